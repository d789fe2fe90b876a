"""Hours and days count each change once, wherever the job ends, and forget what is kept no longer."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from controller.config import Config
from controller.store import rollup, shared
from controller.store.records import Write
from controller.store.rollup import DAY, HOUR, forget, roll_up
from controller.store.store import Store
from tests.controller import showcase
from tests.controller.house import Keys, event, uuid
from vocab.errors import Unreachable
from vocab.lines import ActionLine, AnyLine, EventLine, StateLine, Subject, Target
from vocab.states import ActionKind, ActionState

START = 1_796_000_000.0 // DAY * DAY


@pytest.fixture
async def store(tmp_path: Path, database: Keys) -> AsyncIterator[Store]:
    opened = await Store.open(Config(state_dir=str(tmp_path), **database).place)
    if opened.database.shared:
        async with opened.noting() as connection:
            opened.term = await shared.take(connection, "test", await shared.look(connection))
    yield opened
    await opened.close()


def seen(number: int, at: float, **more: Any) -> AnyLine:
    return EventLine(at=START + at, subject=Subject(gpu=uuid(0)), event=event(number, **more))


def state(to: str, at: float, **subject: str) -> AnyLine:
    return StateLine(at=START + at, subject=Subject(**(subject or {"gpu": uuid(0)})), to=to, why="")


def start(replica: str, at: float, deployment: str = "chat") -> AnyLine:
    return ActionLine(
        at=START + at,
        subject=Subject(replica=replica),
        id=f"a-{replica}",
        of=ActionKind.START_REPLICA,
        state=ActionState.ORDERED,
        token="1.1",
        rule="",
        policy="",
        deployment=deployment,
        target=Target("n1", (uuid(0),)),
        why="",
    )


async def tell(store: Store, *lines: AnyLine) -> None:
    await store.commit(Write(at=START, lines=lines))


async def table(store: Store, measure: str, span: int = HOUR) -> dict[tuple[int, str], float]:
    """By number of the hour or day, and name."""
    async with store.reading() as connection:
        rows = await rollup.sums(connection, span, 0.0, measure=measure)
    return {(int((row["start"] - START) // span), row["name"]): row["value"] for row in rows}


async def test_faults_are_counted_by_code_in_their_hour_and_day(store: Store) -> None:
    await tell(store, seen(1, 10.0), seen(2, 20.0), seen(3, HOUR + 1.0, code="xid:31"))
    assert await roll_up(store, START + 2 * HOUR) == 3
    assert await table(store, "fault") == {(0, "xid:79"): 2.0, (1, "xid:31"): 1.0}
    assert await table(store, "fault", DAY) == {(0, "xid:79"): 2.0, (0, "xid:31"): 1.0}


async def test_an_event_that_grows_drills_and_injections_are_no_further_faults(store: Store) -> None:
    await tell(store, seen(1, 10.0))
    await roll_up(store, START + 20.0)
    await tell(store, seen(1, 30.0, rev=2, count=9), seen(2, 31.0, drill=True), seen(3, 32.0, injected=True))
    await tell(store, seen(4, 33.0, rev=2), seen(4, 34.0, rev=3))
    await roll_up(store, START + 40.0)
    assert await table(store, "fault") == {(0, "xid:79"): 2.0}


async def test_a_second_run_adds_nothing(store: Store) -> None:
    await tell(store, seen(1, 10.0), state("failed", 10.0), state("healthy", 20.0))
    await roll_up(store, START + 30.0)
    assert await roll_up(store, START + 30.0) == 0
    assert await table(store, "state") == {(0, "failed"): 10.0}


async def test_a_run_that_ends_in_the_middle_goes_on_where_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollup, "BATCH", 2)
    await tell(store, *(seen(number, 1.0) for number in range(1, 8)))

    class Stops(Store):
        left = 2

        def deciding(self) -> Any:
            self.left -= 1
            if self.left < 0:
                raise Unreachable("the store is away")
            return super().deciding()

    broken = Stops(store.database)
    broken.term = store.term
    with pytest.raises(Unreachable):
        await roll_up(broken, START + 10.0)
    await broken.close()
    assert await table(store, "fault") == {(0, "xid:79"): 4.0}
    assert await roll_up(store, START + 10.0) == 3
    assert await table(store, "fault") == {(0, "xid:79"): 7.0}


async def test_time_in_a_state_is_divided_among_hours_and_goes_on_while_it_lasts(store: Store) -> None:
    await tell(store, state("failed", HOUR - 100.0))
    await roll_up(store, START + 2 * HOUR + 50.0)
    assert await table(store, "state") == {(0, "failed"): 100.0, (1, "failed"): 3600.0}
    await tell(store, state("healthy", 2 * HOUR + 70.0))
    await roll_up(store, START + 5 * HOUR)
    assert await table(store, "state") == {(0, "failed"): 100.0, (1, "failed"): 3600.0, (2, "failed"): 70.0}
    assert await table(store, "state", DAY) == {(0, "failed"): 3770.0}


async def test_a_fault_counts_for_the_deployment_whose_replica_was_there(store: Store) -> None:
    await tell(store, start("r1", 1.0), state("ready", 2.0, replica="r1"), seen(1, 10.0))
    await roll_up(store, START + 11.0)
    await tell(store, seen(2, 12.0), state("stopped", 20.0, replica="r1"), seen(3, 30.0))
    await roll_up(store, START + 40.0)
    async with store.reading() as connection:
        rows = await rollup.sums(connection, HOUR, 0.0)
    found = {(row["deployment"], row["measure"], row["name"]): row["value"] for row in rows}
    assert found == {("chat", "fault", "xid:79"): 2.0, ("", "fault", "xid:79"): 1.0, ("chat", "state", "ready"): 18.0}


async def test_holds_are_counted_by_rule_or_owner_when_they_are_placed(store: Store) -> None:
    from msgspec.structs import replace

    hold = replace(showcase.HOLD, at=START, subject=Subject(gpu=uuid(0)), op="placed", rule=None)
    moved = replace(hold, since=hold.at, until=START + 60.0)  # the end of a maintenance
    await tell(store, hold, moved, replace(hold, op="lifted"), replace(hold, op="would_place"))
    await roll_up(store, START + 1.0)
    assert await table(store, "hold") == {(0, hold.owner): 1.0}


async def test_hours_are_forgotten_before_days(store: Store) -> None:
    await tell(store, seen(1, 10.0))
    await roll_up(store, START + 20.0)
    assert await forget(store, START + 20 * DAY) == 1
    assert (await table(store, "fault"), len(await table(store, "fault", DAY))) == ({}, 1)
    assert await forget(store, START + 500 * DAY) == 1
    assert await table(store, "fault", DAY) == {}


async def test_old_changes_fill_only_what_is_kept(store: Store) -> None:
    await tell(store, seen(1, 10.0), state("failed", 0.0))
    await roll_up(store, START + 20 * DAY)
    assert await table(store, "fault") == {}
    assert sum((await table(store, "state")).values()) == 14 * DAY
    assert sum((await table(store, "state", DAY)).values()) == 20 * DAY
