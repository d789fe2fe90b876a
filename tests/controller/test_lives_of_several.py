"""Any life of two controllers on one database: inbox, take-over, a stale leader, batches twice and late, lost answers.

Both are whole but for their doors: the loops that decide, follow, renew the lease, post and read run as they are, in a
time that passes by itself (``tests.idle_time``), over a stand-in for the shared database
(``tests.controller.one_file``), at each statement of which a controller may die, lose its connection or stand still.
Whatever comes, in the end each event that was acknowledged is stored and was thought about once, each order was carried
out once or not at all as its answer said, no two decisions carry one token, and only who held the lease has decided.
"""

import asyncio
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from controller.api.agents import Agents
from controller.api.route import Call
from controller.config import Config
from controller.core.fleet.stimuli import Asked
from controller.deciding.conductor import Conductor, Submission
from controller.deciding.dispatch import Dispatch
from controller.deciding.mind import Mind
from controller.door.access import Caller
from controller.several.reports import Reports
from controller.several.shared import Shared
from controller.store import read
from controller.store.dialects import Sqlite
from controller.store.records import Audit
from controller.store.store import Store
from controller.telling.export import Export
from controller.telling.watch import Watch
from tests import idle_time
from tests.controller.house import NODE, batch, event, facts, uuid
from tests.controller.one_file import Fate, OneFile, Power, Stored
from tests.idle_time import LoopClock
from vocab.errors import CorralError, Unreachable
from vocab.events import Event
from vocab.lines import ActionLine, AnyLine, EventLine, HoldLine
from vocab.messages import Batch
from vocab.roles import Role
from vocab.states import ActionState, Level

MOST = 12  # events of the node
FACTS = replace(facts(gpus=4), level=Level.REPAIR)
AGENT = Caller(name=NODE, role=Role.NODE, node=NODE)
EXPORT = Export("test")  # of all lives: nobody looks at it
UNDONE = "nothing was done"  # what an order is told that nobody has taken up

T = TypeVar("T")


def seen(number: int) -> Event:
    """The node's event of this number: of four GPUs, most of them fall off the bus, some say little."""
    return event(number, gpu=number % 4, code="xid:13" if number % 3 == 0 else "xid:79")


class _Posted(msgspec.Struct, frozen=True):
    """A request of an agent, as much of it as is asked for."""

    body: bytes
    caller: Caller = AGENT


class Life:
    """One process of a controller, from its start to its death."""

    def __init__(self, name: str, file: Path, stored: list[Stored]) -> None:
        clock = LoopClock()
        self.power = Power(name, stored)
        place = OneFile(file, self.power)
        self.stores = Store(place), Store(place)
        self.dispatch, self.reports = Dispatch(), Reports(clock)
        self.mind = Mind(Config(state_dir=str(file.parent)), self.stores[0], self.dispatch)
        shared = Shared(*self.stores, name, clock, self.reports)
        self.conductor = Conductor(self.stores[0], self.mind, Watch(), clock, EXPORT, shared)
        self._agents = Agents(self.conductor, self.dispatch, self.reports, EXPORT, ())
        self.running = asyncio.create_task(self.conductor.run())
        self.ending = asyncio.create_task(self._end())

    async def _end(self) -> None:
        """What is left of a process that was killed: nothing."""
        await self.power.dead.wait()
        self.running.cancel()
        await asyncio.wait([self.running])
        for store in self.stores:
            await store.close()

    async def take(self, report: Batch) -> int:
        """Up to where the node is told that its spool is stored. Raises CorralError."""
        posted = cast("Call", _Posted(msgspec.json.encode(report)))
        return (await self._answered(self._agents.batch(posted))).position

    async def obey(self, asked: Asked) -> None:
        """Carry out a person's order. Raises CorralError."""
        audit = Audit(LoopClock().now(), asked.by, asked.do, "", asked.reason, "")
        await self._answered(self.conductor.submit(Submission(stimuli=(asked,), audit=audit)))

    async def _answered(self, asking: Coroutine[Any, Any, T]) -> T:
        """The answer, unless the process dies before it has given one."""
        answer, death = asyncio.ensure_future(asking), asyncio.ensure_future(self.power.dead.wait())
        await asyncio.wait({answer, death}, return_when=asyncio.FIRST_COMPLETED)
        death.cancel()
        if not answer.done():
            answer.cancel()
            raise Unreachable("the connection was closed")
        return answer.result()


class Fleet:
    """One node, one person and two controllers."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.stored: list[Stored] = []
        self._born = count(1)
        self.lives = [self._life(), self._life()]
        self.acknowledged = 0
        self.orders: dict[str, str] = {}  # by reason: what its giver was told
        self._under_way: list[asyncio.Task[None]] = []

    def _life(self) -> Life:
        number = next(self._born)
        return Life(f"c{number}/life", self.file, self.stored)

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        for life in self.lives:
            if life.running.done() and not life.power.dead.is_set():
                life.running.result()
                raise AssertionError("a controller has ended by itself")

    @property
    def leader(self) -> int | None:
        """Which of them decides, as far as it knows."""
        leads = [who for who, life in enumerate(self.lives) if life.conductor.leads and not life.power.dead.is_set()]
        return leads[0] if leads else None

    async def led(self) -> int:
        """Which of them decides, once one does and both are up."""
        for who, life in enumerate(self.lives):
            life.power.disarm()
            await self.start(who)
        async with asyncio.timeout(60):
            while self.leader is None or not all(life.conductor.ready[0] for life in self.lives):
                await self.wait(0.25)
        return self.leader

    async def start(self, who: int) -> None:
        """Another process, where the one before has died."""
        if self.lives[who].power.dead.is_set():
            await self.lives[who].ending
            self.lives[who] = self._life()

    async def kill(self, who: int) -> None:
        life = self.lives[who]
        life.power.dead.set()
        life.power.goes.set()
        await life.ending

    # -- who asks -------------------------------------------------------------------------------------

    def begin(self, asking: Coroutine[Any, Any, None]) -> None:
        """Have somebody ask, without waiting for it."""
        self._under_way.append(asyncio.create_task(asking))

    async def report(self, who: int, first: int, number: int, *, lost: bool = False) -> None:
        """Events from ``first`` on; ``lost``: the answer does not reach the node."""
        events = [seen(each) for each in range(first, min(first + number, MOST + 1))]
        made = batch(*events, first=first, facts=FACTS, at=LoopClock().now())
        try:
            position = await self.lives[who].take(made)
        except CorralError:
            return
        if not lost:
            self.acknowledged = max(self.acknowledged, position)

    async def order(self, who: int) -> None:
        """A person holds a GPU, each time for another reason."""
        reason = f"order {len(self.orders) + 1}"
        self.orders[reason] = "unknown"
        asked = Asked(do="hold", by="ada", owner="ops", reason=reason, gpu=uuid(len(self.orders) % 4), force=True)
        try:
            await self.lives[who].obey(asked)
        except Unreachable as error:
            if UNDONE in str(error):
                self.orders[reason] = "undone"
        else:
            self.orders[reason] = "done"

    async def settle(self) -> None:
        """Both are up; all that the node has is acknowledged, nobody waits, and both know all that is stored."""
        await self.led()
        async with asyncio.timeout(120):
            for turn in count():
                if self.acknowledged >= MOST:
                    break
                await self.report(turn % 2, self.acknowledged + 1, 5)
                await self.wait(0.5)
            await asyncio.gather(*self._under_way)
            while not self._is_quiet():
                await self.wait(0.5)

    def _is_quiet(self) -> bool:
        leads = [life.conductor.leads for life in self.lives]
        ready = [life.conductor.ready[0] for life in self.lives]
        with sqlite3.connect(self.file) as connection:
            waiting = "SELECT count(*) FROM inbox WHERE answer IS NULL AND failed IS NULL"
            ((waits,),) = connection.execute(waiting).fetchall()
            ((seq,),) = connection.execute("SELECT value FROM counters WHERE name = 'seq'").fetchall()
        return all(ready) and sum(leads) == 1 and not waits and [life.mind.seq for life in self.lives] == [seq, seq]


# -- what must be so in the end -------------------------------------------------------------------------------


async def check(fleet: Fleet) -> None:
    """Nothing acknowledged is lost, nothing was done twice, and nobody decided who did not hold the lease."""
    assert all(each.by == each.holder for each in fleet.stored), fleet.stored
    judge = Store(OneFile(fleet.file, Power("judge", fleet.stored)))
    async with judge.reading() as connection:
        changes = [change async for change in read.all_changes(connection)]
        audits = Counter(each.reason for each in await read.audits(connection, limit=1000))
    assert [change.seq for change in changes] == list(range(1, len(changes) + 1))
    lines = [change.line for change in changes]
    told = Counter(line.event.id for line in lines if isinstance(line, EventLine) and line.event.source != "corral")
    assert told == {seen(number).id: 1 for number in range(1, MOST + 1)}
    _check_orders(fleet, lines, audits)
    _check_actions(lines)
    minds = [Mind(Config(state_dir=str(fleet.file.parent)), judge, Dispatch()), *(life.mind for life in fleet.lives)]
    while len({mind.seq for mind in minds}) > 1 or not minds[0].seq:
        await minds[0].catch_up()
    views = [mind.core.view() for mind in minds]
    assert views[0].holds == views[1].holds == views[2].holds
    assert views[0].incidents == views[1].incidents == views[2].incidents
    await judge.close()


def _check_orders(fleet: Fleet, lines: list[AnyLine], audits: Counter[str]) -> None:
    placed = Counter((line.subject, line.owner, line.incident, line.reason) for line in lines if _is_placed(line))
    assert set(placed.values()) <= {1}
    held = Counter(line.reason.partition(" (")[0] for line in lines if _is_placed(line) and line.owner == "ops")
    for reason, was in fleet.orders.items():
        may = {"done": {1}, "undone": {0}, "unknown": {0, 1}}[was]
        assert audits[reason] in may, f"{reason}, said to be {was}, was audited {audits[reason]} times"
        assert held[reason] <= audits[reason], f"{reason} is in force and not audited"


def _check_actions(lines: list[AnyLine]) -> None:
    actions = [line for line in lines if isinstance(line, ActionLine)]
    ordered = Counter((line.id, line.token) for line in actions if line.state is ActionState.ORDERED)
    assert set(ordered.values()) <= {1}
    tokens: dict[str, set[str]] = {}
    for line in actions:
        if line.token:
            tokens.setdefault(line.token, set()).add(line.id)
    assert all(len(ids) == 1 for ids in tokens.values())


def _is_placed(line: AnyLine) -> Any:
    return isinstance(line, HoldLine) and line.op == "placed"


# -- lives ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with its tables."""
    path = tmp_path_factory.mktemp("empty") / "corral.db"

    async def make() -> None:
        await (await Store.open(Sqlite(path))).close()

    asyncio.run(make())
    return path


@contextmanager
def copy_of(empty: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(shutil.copy(empty, folder))


deeds = st.one_of(
    st.tuples(st.sampled_from(("next", "next", "again", "late", "both")), st.integers(1, 4), st.booleans()),
    st.tuples(st.just("order"), st.just(0), st.just(False)),
    st.tuples(st.sampled_from(("stop", "kill")), st.just(0), st.just(False)),
)
fails = st.none() | st.tuples(st.integers(0, 45), st.sampled_from(Fate), st.booleans())  # when, what, to the leader?
steps = st.tuples(st.integers(0, 1), deeds, fails, st.sampled_from((0.0, 0.3, 1.0, 4.0)))


async def live(file: Path, moves: list[tuple[int, Any, Any, float]]) -> None:
    fleet = Fleet(file)
    await fleet.wait(1.0)
    sent = 0
    for who, (deed, size, lost), fail, seconds in moves:
        for each, life in enumerate(fleet.lives):
            life.power.goes.set()
            if life.power.dead.is_set():
                await fleet.start(each)
        if fail is not None:
            leader = fleet.leader if fail[2] else None
            fleet.lives[who if leader is None else leader].power.arm(fail[0], fail[1])
        if deed == "order":
            fleet.begin(fleet.order(who))
        elif deed == "stop":
            fleet.lives[who].power.goes.clear()
        elif deed == "kill":
            await fleet.kill(who)
        else:
            first = {"again": 1, "late": max(1, sent - size)}.get(deed, fleet.acknowledged + 1)
            for each in (0, 1) if deed == "both" else (who,):
                if first <= MOST:
                    fleet.begin(fleet.report(each, first, size, lost=lost))
                    sent = max(sent, first + size - 1)
        await fleet.wait(seconds)
    await end(fleet)


async def end(fleet: Fleet) -> None:
    await fleet.settle()
    await check(fleet)
    for who in (0, 1):
        await fleet.kill(who)


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(moves=st.lists(steps, min_size=2, max_size=10))
def test_any_life_of_two_controllers_loses_nothing_and_does_nothing_twice(
    empty: Path, moves: list[tuple[int, Any, Any, float]]
) -> None:
    with copy_of(empty) as file:
        idle_time.run(live(file, moves))


async def leader_dies(file: Path) -> None:
    """Again and again, each time some statements later of taking a report and an order out of the inbox."""
    fleet = Fleet(file)
    for number, after in enumerate(range(0, 48, 6), 1):
        leader = await fleet.led()
        await fleet.report(1 - leader, number, 1)
        assert fleet.acknowledged == number, "it is acknowledged once it is in the inbox"
        fleet.begin(fleet.order(1 - leader))
        fleet.lives[leader].power.arm(after, Fate.DIES)
        await fleet.wait(4.0)
        assert fleet.lives[leader].power.dead.is_set()
        assert fleet.lives[1 - leader].conductor.leads
        assert fleet.orders[f"order {number}"] == "done"
    await end(fleet)


def test_what_is_in_the_inbox_outlives_a_leader_that_dies_at_any_of_its_statements(empty: Path) -> None:
    with copy_of(empty) as file:
        idle_time.run(leader_dies(file))


async def follower_dies(file: Path) -> None:
    """Again and again, each time at a later statement of putting a report into the inbox."""
    fleet = Fleet(file)
    for after in range(0, 10, 2):
        follower = 1 - await fleet.led()
        fleet.lives[follower].power.arm(after, Fate.DIES)
        await fleet.report(follower, fleet.acknowledged + 1, 1)
        await fleet.wait(0.5)
        assert fleet.lives[follower].power.dead.is_set()
    await end(fleet)


def test_what_a_follower_has_acknowledged_outlives_it_at_whatever_statement_it_dies(empty: Path) -> None:
    with copy_of(empty) as file:
        idle_time.run(follower_dies(file))


async def leader_stands_still(file: Path) -> None:
    """Each time some statements later of a turn: meanwhile another decides, and the same report goes to that one."""
    fleet = Fleet(file)
    for number, after in enumerate(range(0, 12, 3), 1):
        old = await fleet.led()
        fleet.begin(fleet.report(old, number, 2))
        fleet.lives[old].power.arm(after, Fate.STANDS_STILL)
        await fleet.wait(4.0)
        assert fleet.lives[1 - old].conductor.leads
        await fleet.report(1 - old, number, 1)
        fleet.begin(fleet.order(1 - old))
        fleet.lives[old].power.goes.set()
        await fleet.wait(1.0)
        assert not fleet.lives[old].conductor.leads
    await end(fleet)


def test_a_leader_that_stood_still_in_its_turn_stores_nothing_of_it_once_another_decides(empty: Path) -> None:
    with copy_of(empty) as file:
        idle_time.run(leader_stands_still(file))
