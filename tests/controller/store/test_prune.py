"""Old history goes; what still stands stays, however old, so that a restart knows it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controller.config import Config
from controller.store import read, shared
from controller.store.prune import prune
from controller.store.records import Audit, Received, Write
from controller.store.store import Store
from tests.controller import showcase
from tests.controller.house import Keys, event
from vocab.lines import AnyLine, EventLine, NoteLine, StateLine, Subject
from vocab.states import ActionKind, ActionState

LONG_AGO = 1000.0
SINCE = 2000.0


@pytest.fixture
async def store(tmp_path: Path, database: Keys) -> AsyncIterator[Store]:
    opened = await Store.open(Config(state_dir=str(tmp_path), **database).place)
    if opened.database.shared:
        async with opened.noting() as connection:
            opened.term = await shared.take(connection, "test", await shared.look(connection))
    yield opened
    await opened.close()


def old(line: AnyLine, **more: object) -> AnyLine:
    from msgspec.structs import replace

    return replace(line, at=LONG_AGO, **more)


async def lines(store: Store) -> list[AnyLine]:
    async with store.reading() as connection:
        return [change.line async for change in read.all_changes(connection)]


async def test_finished_things_are_forgotten(store: Store) -> None:
    finished = [
        old(showcase.HOLD),
        old(showcase.HOLD, op="lifted"),
        old(showcase.CONDITION),
        old(showcase.CONDITION, state="cleared"),
        old(showcase.INCIDENT),
        old(showcase.INCIDENT, state="closed"),
        old(EventLine(at=0.0, subject=Subject(), event=event(1))),
    ]
    await store.commit(Write(at=LONG_AGO, lines=finished))
    assert await prune(store, SINCE) == len(finished)
    assert await lines(store) == []


async def test_standing_things_stay_with_all_their_lines(store: Store) -> None:
    standing = [
        old(EventLine(at=0.0, subject=Subject(), event=showcase.EVENT)),
        old(showcase.CONDITION),
        old(showcase.INCIDENT),
        old(showcase.HOLD),
        old(showcase.REBOOT),
        old(showcase.REBOOT, state=ActionState.ORDERED),
        old(NoteLine(at=0.0, subject=Subject(), code="paused", text="freeze")),
    ]
    await store.commit(Write(at=LONG_AGO, lines=standing))
    assert await prune(store, SINCE) == 0
    assert await lines(store) == standing


async def test_last_word_on_a_subject_stays(store: Store) -> None:
    def word(to: str) -> StateLine:
        return StateLine(at=LONG_AGO, subject=Subject(gpu="GPU-1"), to=to, why="")

    await store.commit(Write(at=LONG_AGO, lines=[word("degraded"), word("healthy")]))
    await prune(store, SINCE)
    assert await lines(store) == [word("healthy")]


async def test_each_rule_that_fell_back_to_shadow_stays_there(store: Store) -> None:
    def demoted(rule: str) -> NoteLine:
        return NoteLine(at=LONG_AGO, subject=Subject(), code="rule_demoted", text=f"{rule} was wrong", rule=rule)

    await store.commit(Write(at=LONG_AGO, lines=[demoted("xid:48"), demoted("xid:95")]))
    await prune(store, SINCE)
    assert await lines(store) == [demoted("xid:48"), demoted("xid:95")]


async def test_newest_token_and_the_orders_that_place_replicas_stay(store: Store) -> None:
    def action(of: ActionKind, token: str) -> AnyLine:
        made = showcase.action(of, ActionState.DONE, 0.0, "", Subject(replica="r"))
        return old(made, id=f"a-{token}", token=token)

    placed = action(ActionKind.START_REPLICA, "1.1")
    drained = action(ActionKind.DRAIN, "1.9")
    newest = action(ActionKind.STOP_REPLICA, "1.10")
    await store.commit(Write(at=LONG_AGO, lines=[placed, drained, newest]))
    await prune(store, SINCE)
    assert await lines(store) == [placed, newest]


async def test_young_history_stays(store: Store) -> None:
    young = [EventLine(at=SINCE + 1, subject=Subject(), event=event(1))]
    await store.commit(Write(at=SINCE + 1, lines=young))
    await prune(store, SINCE)
    assert await lines(store) == young


async def test_many_rows_go_in_small_transactions(store: Store) -> None:
    many = [EventLine(at=LONG_AGO, subject=Subject(), event=event(number)) for number in range(1300)]
    await store.commit(
        Write(
            at=LONG_AGO,
            lines=many,
            received=[Received("n1", position, "d") for position in range(1, 601)],
            audits=[Audit(LONG_AGO, "a", "hold", "", "", "")],
        )
    )
    assert await prune(store, SINCE) == 1300 + 600 + 1
