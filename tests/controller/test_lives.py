"""Any life of a controller: batches twice, late, in pieces; a crash at any statement of any transaction; answers lost.

Whatever comes, in the end each event that was acknowledged is stored and was thought about once, no two decisions carry
the same token, nothing is ordered twice, and a controller that starts anew sees what the one before it saw.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from sqlalchemy import event as hooks
from sqlalchemy import select

from controller.config import Config
from controller.deciding.dispatch import Dispatch
from controller.deciding.mind import Mind
from controller.store import read, shared
from controller.store.store import Store
from controller.store.tables import events
from tests.controller.house import Keys, batch, event, facts, lay_out
from tests.controller.postgres import Server
from vocab.errors import Unreachable
from vocab.lines import ActionLine, EventLine, HoldLine
from vocab.states import ActionState, Level

MOST = 12  # events of the node
FACTS = replace(facts(gpus=4), level=Level.REPAIR)


class Crash(OSError):
    """The database is gone in the middle of a statement."""


def seen(number: int) -> Any:
    """The node's event of this number: of four GPUs, most of them fall off the bus, some say little."""
    code = "xid:13" if number % 3 == 0 else "xid:79"
    return event(number, gpu=number % 4, code=code)


class Life:
    """A controller's memory and decisions without its network; ``restart`` begins another life."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.now = 1_796_000_000.0
        self.acknowledged = 0
        self.outcomes: dict[str, ActionState] = {}

    async def start(self) -> None:
        self.store = await Store.open(self.config.place)
        if self.store.database.shared:
            async with self.store.noting() as connection:
                self.store.term = await shared.take(connection, "me", await shared.look(connection))
        self.mind = Mind(self.config, self.store, Dispatch())
        await self.mind.resume(self.now)
        await self.commit()

    async def stop(self) -> None:
        await self.store.close()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def commit(self) -> None:
        self.mind.tick(self.now)
        write = self.mind.write(self.now)
        if not write.empty:
            self.mind.seq = await self.store.commit(write)
        self.mind.settle(write)

    async def report(self, first: int, count: int, *, lost: bool) -> None:
        """Events from ``first`` on; ``lost``: they are stored and nobody hears of it."""
        self.now += 1.0
        items = [seen(number) for number in range(first, min(first + count, MOST + 1))]
        made = batch(*items, first=first, facts=FACTS, at=self.now)
        records = await self.mind.new_records(made)
        self.mind.hear(made, records, self.now)
        await self.commit()
        if not lost:
            reached = self.mind.repeats.acknowledged(made.node, made.session)
            self.acknowledged = max(self.acknowledged, reached)


@contextmanager
def crashing(store: Store, after: int | None) -> Iterator[None]:
    """The statement after so many fails, and all later ones: the process has died there."""
    left = [after]

    def count(*_: object) -> None:
        if left[0] is not None:
            left[0] -= 1
            if left[0] < 0:
                raise Crash("the power went")

    for engine in store.engines:
        hooks.listen(engine, "before_cursor_execute", count)
    try:
        yield
    finally:
        for engine in store.engines:
            hooks.remove(engine, "before_cursor_execute", count)


step = st.tuples(
    st.sampled_from(["next", "again", "late", "restart", "wait"]),
    st.integers(1, 4),  # events, or from how far back
    st.one_of(st.none(), st.none(), st.integers(0, 14)),  # statements until the crash
    st.booleans(),  # whether the answer is lost
)


async def live(config: Config, steps: list[tuple[str, int, int | None, bool]]) -> None:
    life = Life(config)
    await lay_out(config.place)
    await life.start()
    sent = 0
    for kind, size, crash, lost in steps:
        try:
            with crashing(life.store, crash):
                if kind == "restart":
                    await life.restart()
                elif kind == "wait":
                    life.now += 400.0
                    await life.commit()
                else:
                    first = {"next": life.acknowledged + 1, "again": 1, "late": max(1, sent - size)}[kind]
                    if first <= MOST:
                        await life.report(first, size, lost=lost)
                        sent = max(sent, first + size - 1)
        except Unreachable:
            await life.restart()
    while life.acknowledged < MOST:
        await life.report(life.acknowledged + 1, 5, lost=False)
    await check(life)
    await life.stop()


async def check(life: Life) -> None:
    async with life.store.reading() as connection:
        changes = [change async for change in read.all_changes(connection)]
        ids = [seen(number).id for number in range(1, MOST + 1)]
        stored = (await connection.execute(select(events.c.id).where(events.c.id.in_(ids)))).all()
    assert len(stored) == MOST
    assert [change.seq for change in changes] == list(range(1, len(changes) + 1))
    lines = [change.line for change in changes]
    told = Counter(line.event.id for line in lines if isinstance(line, EventLine) and line.event.source != "corral")
    assert set(told.values()) <= {1}
    assert {event.id for event in stored} <= told.keys()
    placed = Counter((line.subject, line.owner, line.incident) for line in lines if _is_placed(line))
    assert set(placed.values()) <= {1}
    ordered = Counter((line.id, line.token) for line in lines if _is_ordered(line))
    assert set(ordered.values()) <= {1}
    tokens: dict[str, set[str]] = {}
    for line in lines:
        if isinstance(line, ActionLine) and line.token:
            tokens.setdefault(line.token, set()).add(line.id)
    assert all(len(ids) == 1 for ids in tokens.values())
    before = life.mind.core
    await life.restart()
    assert life.mind.core.view().holds == before.view().holds
    assert life.mind.core.view().incidents == before.view().incidents


def _is_placed(line: Any) -> bool:
    return isinstance(line, HoldLine) and line.op == "placed"


def _is_ordered(line: Any) -> bool:
    return isinstance(line, ActionLine) and line.state is ActionState.ORDERED


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(step, max_size=10))
def test_any_life_loses_nothing_and_does_nothing_twice_on_sqlite(steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(live(Config(state_dir=folder), steps))


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(step, max_size=10))
def test_any_life_loses_nothing_and_does_nothing_twice_on_postgresql(postgres: Server, steps: list[Any]) -> None:
    keys: Keys = postgres.settings(postgres.fresh())
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(live(Config(state_dir=folder, **keys), steps))
