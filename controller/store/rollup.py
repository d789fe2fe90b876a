"""Hours and days of GPUs and deployments, rolled up from the changes: each change counts once, whatever ends the job.

The counter ``rolled`` is the ``seq`` up to which changes are in; it moves in the transaction that adds them. Measures:
``fault`` (events by code, those of drills and injections aside), ``hold`` (placed, by rule or owner), ``repair`` (done,
by kind), ``verdict`` (right, wrong) and ``state`` (seconds by state). What is usual is not stored: a GPU is healthy for
the rest of the time. Changes count when the controller took them in, not by the clocks of nodes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import msgspec
from sqlalchemy import delete, func, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.store import change
from controller.store.change import Change
from controller.store.read import changes_after, counter
from controller.store.store import Store
from controller.store.tables import cards, changes, counters, rolling, rollups
from controller.store.transaction import Transaction
from vocab.events import Severity
from vocab.lines import ActionLine, EventLine, HoldLine, NoteLine, StateLine
from vocab.states import REPAIRS, ActionKind, ActionState, ReplicaState

HOUR, DAY = 3600, 86_400
KEPT_S = {HOUR: 14.0 * DAY, DAY: 400.0 * DAY}  # how long the rollups of each span are kept
BATCH = 500  # changes, or things whose time is booked, in a transaction: tens of milliseconds
TRIED = frozenset({ActionKind.RESTART_REPLICA, *REPAIRS})
OVER = frozenset({ReplicaState.STOPPED, ReplicaState.FAILED})  # it holds no GPU then
USUAL = "healthy"  # of a GPU

Key = tuple[int, int, str, str, str, str]  # as the primary key of ``rollups``


class Rolling(msgspec.Struct, frozen=True, kw_only=True):
    """How far the time of one GPU or replica is booked; see the table."""

    subject: str
    state: str = ""
    since: float = 0.0
    booked: bool = False
    deployment: str = ""
    guest: str = ""


class Sums:
    """What is to be added to the rollups. Hours older than the kept ones are left out."""

    def __init__(self, oldest: dict[int, float]) -> None:
        self.values: Counter[Key] = Counter()
        self._oldest = oldest

    def add(self, at: float, gpu: str, deployment: str, measure: str, name: str) -> None:
        """One more at this time."""
        for span, oldest in self._oldest.items():
            start = int(at // span) * span
            if start >= oldest:
                self.values[span, start, gpu, deployment, measure, name] += 1

    def spend(self, row: Rolling, until: float) -> None:
        """The time from ``row.since`` on, divided among the hours and days in which it was spent."""
        gpu = row.subject.removeprefix("gpu:") if row.subject.startswith("gpu:") else ""
        for span, oldest in self._oldest.items():
            at = max(row.since, oldest)
            while at < until:
                start = int(at // span) * span
                end = min(until, float(start + span))
                self.values[span, start, gpu, row.deployment, "state", row.state] += end - at  # type: ignore[assignment]
                at = end


async def roll_up(store: Store, now: float) -> int:
    """Add all changes that are not in yet, then the time that passed up to the hour; how many changes there were."""
    rolled = 0
    while count := await _batch(store, now):
        rolled += count
    hour = float(now // HOUR * HOUR)
    while await _pass(store, hour, now):
        pass
    return rolled


async def forget(store: Store, now: float) -> int:
    """Delete the rollups that are kept no longer, one hour or day a transaction, and replicas that are long over."""
    gone = 0
    for span, kept in KEPT_S.items():
        old = (rollups.c.span == span, rollups.c.start < now - kept - span)
        while True:
            async with store.deciding() as connection:
                first = (await connection.execute(select(func.min(rollups.c.start)).where(*old))).scalar_one()
                if first is None:
                    break
                mine = (rollups.c.span == span, rollups.c.start == first)
                gone += (await connection.execute(delete(rollups).where(*mine))).rowcount
    over = (rolling.c.booked.is_(False), rolling.c.since < now - KEPT_S[HOUR], rolling.c.subject.startswith("replica:"))
    while True:
        subjects = select(rolling.c.subject).where(*over).limit(BATCH)
        async with store.deciding() as connection:
            count = (await connection.execute(delete(rolling).where(rolling.c.subject.in_(subjects)))).rowcount
        gone += count
        if count < BATCH:
            return gone


async def _batch(store: Store, now: float) -> int:
    async with store.deciding() as connection:
        position = await counter(connection, "rolled")
        page = await changes_after(connection, position, limit=BATCH)
        if not page:
            return 0
        known = await _known(connection, page)
        sums = Sums(_oldest(now))
        book = _Book(known, sums, await _grown(connection, page, position))
        for each in page:
            book.take(each)
        await _add(store, connection, sums, book.moved.values())
        moved = update(counters).where(counters.c.name == "rolled").values(value=page[-1].seq)
        await connection.execute(moved)
        return len(page)


async def _pass(store: Store, hour: float, now: float) -> int:
    """Book the time of things whose state lasts, up to the hour."""
    async with store.deciding() as connection:
        due = select(rolling).where(rolling.c.booked.is_(True), rolling.c.since < hour).limit(BATCH)
        rows = [Rolling(**row) for row in (await connection.execute(due)).mappings()]
        sums = Sums(_oldest(now))
        for row in rows:
            sums.spend(row, hour)
        await _add(store, connection, sums, (msgspec.structs.replace(row, since=hour) for row in rows))
        return len(rows)


def _oldest(now: float) -> dict[int, float]:
    return {span: now - kept for span, kept in KEPT_S.items()}


async def _add(store: Store, connection: AsyncConnection, sums: Sums, moved: Iterable[Rolling]) -> None:
    await Transaction(connection, store.database.insert).put(rolling, map(msgspec.structs.asdict, moved))
    if not sums.values:
        return
    statement = store.database.insert(rollups)
    more = statement.on_conflict_do_update(
        index_elements=[column.name for column in rollups.primary_key],
        set_={"value": rollups.c.value + statement.excluded.value},
    )
    names = [column.name for column in rollups.primary_key]
    rows = [{**dict(zip(names, key, strict=True)), "value": float(value)} for key, value in sums.values.items()]
    await connection.execute(more, rows)


async def _known(connection: AsyncConnection, page: list[Change]) -> dict[str, Rolling]:
    """What is known of the GPUs and replicas of these changes, and of the replicas that are on the GPUs."""
    wanted = dict.fromkeys(subject for each in page for subject in _subjects(each))
    found: dict[str, Rolling] = {}
    while wanted:
        query = select(rolling).where(rolling.c.subject.in_(wanted))
        rows = [Rolling(**row) for row in (await connection.execute(query)).mappings()]
        found |= {row.subject: row for row in rows}
        guests = (f"replica:{row.guest}" for row in rows if row.guest)
        wanted = dict.fromkeys(guest for guest in guests if guest not in found and guest not in wanted)
    return found


def _subjects(each: Change) -> Iterator[str]:
    line = each.line
    yield change.subject_text(line.subject)
    if isinstance(line, EventLine) and line.event.gpu is not None:
        yield f"gpu:{line.event.gpu}"
    target = line.target if isinstance(line, ActionLine | StateLine) else None
    for gpu in target.gpus if target is not None else ():
        yield f"gpu:{gpu}"


async def _grown(connection: AsyncConnection, page: list[Change], position: int) -> set[str]:
    """The events that were taken in before these changes: they only grew."""
    lines = (each.line for each in page)
    ids = [line.event.id for line in lines if isinstance(line, EventLine) and line.event.rev > 1]
    before = select(changes.c.key).where(changes.c.kind == "event", changes.c.key.in_(ids), changes.c.seq <= position)
    return set((await connection.execute(before)).scalars()) if ids else set()


class _Book:
    """Takes changes in order; ``moved`` are the rows of ``rolling`` that are to be written."""

    def __init__(self, known: dict[str, Rolling], sums: Sums, seen: set[str]) -> None:
        self._known = known
        self._sums = sums
        self._seen = seen
        self.moved: dict[str, Rolling] = {}

    def take(self, each: Change) -> None:
        line = each.line
        if isinstance(line, EventLine):
            self._fault(line)
        elif isinstance(line, StateLine):
            self._state(line)
        elif isinstance(line, ActionLine):
            self._action(line)
        elif isinstance(line, HoldLine) and line.op == "placed" and line.since is None:
            self._count(line, "hold", line.rule or line.owner)
        elif isinstance(line, NoteLine) and line.right is not None:
            self._count(line, "verdict", "right" if line.right else "wrong")

    def _fault(self, line: EventLine) -> None:
        event = line.event
        if event.id in self._seen or event.injected or event.drill or event.severity is Severity.INFO:
            return
        self._seen.add(event.id)
        gpu = event.gpu or line.subject.gpu or ""
        self._sums.add(line.at, gpu, self._deployment(gpu, line.subject.replica), "fault", event.code)

    def _count(self, line: HoldLine | NoteLine | ActionLine, measure: str, name: str) -> None:
        gpu = line.subject.gpu or ""
        deployment = self._deployment(gpu, line.subject.replica)
        if gpu or deployment:
            self._sums.add(line.at, gpu, deployment, measure, name)

    def _deployment(self, gpu: str, replica: str | None) -> str:
        """Whose replica it is, or whose is on the GPU."""
        guest = self._row(f"replica:{replica or self._row(f'gpu:{gpu}').guest}")
        return "" if guest.state in OVER and replica is None else guest.deployment

    def _row(self, subject: str) -> Rolling:
        return self._known.get(subject) or Rolling(subject=subject)

    def _put(self, row: Rolling) -> None:
        self._known[row.subject] = self.moved[row.subject] = row

    def _state(self, line: StateLine) -> None:
        if line.subject.gpu is None and line.subject.replica is None:
            return
        row = self._row(change.subject_text(line.subject))
        if row.booked:
            self._sums.spend(row, line.at)
        deployment = line.deployment or row.deployment
        booked = line.to != USUAL if line.subject.gpu is not None else line.to not in OVER
        since = max(line.at, row.since)
        self._put(msgspec.structs.replace(row, state=line.to, since=since, booked=booked, deployment=deployment))
        if line.target is not None and line.subject.replica is not None:
            self._host(line.subject.replica, line.target.gpus)

    def _action(self, line: ActionLine) -> None:
        replica = line.subject.replica
        if line.of is ActionKind.START_REPLICA and replica is not None and line.deployment and line.target is not None:
            row = self._row(f"replica:{replica}")
            if row.deployment != line.deployment:
                self._put(msgspec.structs.replace(row, deployment=line.deployment))
            self._host(replica, line.target.gpus)
        elif line.of in TRIED and line.state is ActionState.DONE:
            self._count(line, "repair", line.of.value)

    def _host(self, replica: str, gpus: Iterable[str]) -> None:
        for gpu in gpus:
            row = self._row(f"gpu:{gpu}")
            if row.guest != replica:
                self._put(msgspec.structs.replace(row, guest=replica))


class Rollup(msgspec.Struct, frozen=True):
    """A sum: of the hour or day that begins at ``start`` (seconds since the epoch, UTC). See the module for measures.

    ``gpu`` and ``deployment`` are empty where it is of none. ``value``: how many, or seconds of the measure ``state``.
    """

    start: int
    gpu: str
    deployment: str
    measure: str
    name: str
    value: float


Place = tuple[Annotated[int, msgspec.Meta(ge=0, le=10**12)], str, str, str, str]  # the key of a rollup within its span


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which rollups: ``equal`` by column; ``nodes``: of GPUs that were last seen there."""

    span: int
    since: float | None = None
    until: float | None = None
    nodes: tuple[str, ...] | None = None
    equal: dict[str, str] = {}


async def rollups_after(
    connection: AsyncConnection, wanted: Wanted, place: Place | None, limit: int
) -> tuple[list[Rollup], Place | None]:
    """At most ``limit`` rollups behind ``place``, the earliest first, and the place of the next page, if any."""
    columns = (rollups.c.start, rollups.c.gpu, rollups.c.deployment, rollups.c.measure, rollups.c.name)
    query = select(*columns, rollups.c.value).where(rollups.c.span == wanted.span).order_by(*columns).limit(limit + 1)
    if wanted.since is not None:
        query = query.where(rollups.c.start >= wanted.since)
    if wanted.until is not None:
        query = query.where(rollups.c.start < wanted.until)
    if wanted.nodes is not None:
        query = query.where(rollups.c.gpu.in_(select(cards.c.uuid).where(cards.c.node.in_(wanted.nodes))))
    for name, value in wanted.equal.items():
        query = query.where(rollups.c[name] == value)
    if place is not None:
        query = query.where(rollups.c.start >= place[0], tuple_(*columns) > place)
    found = [Rollup(*row) for row in await connection.execute(query)]
    shown = found[:limit]
    last = shown[-1] if len(found) > limit else None
    return shown, None if last is None else (last.start, last.gpu, last.deployment, last.measure, last.name)


async def sums(connection: AsyncConnection, span: int, since: float, **wanted: Any) -> list[dict[str, Any]]:
    """The rollups of this span from ``since`` on that match, the earliest first."""
    query = select(rollups).where(rollups.c.span == span, rollups.c.start >= since).order_by(*rollups.primary_key)
    for name, value in wanted.items():
        query = query.where(rollups.c[name] == value)
    return [dict(row) for row in (await connection.execute(query)).mappings()]
