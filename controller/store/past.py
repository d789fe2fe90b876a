"""A fleet's stored past, as a rehearsal plays it: what nodes said, in the order in which it happened, page by page."""

from collections.abc import AsyncIterator, Iterable, Sequence

import msgspec
from msgspec.structs import replace
from sqlalchemy import ColumnElement, func, select, tuple_

from controller.core.rehearsal import Told
from controller.store import change
from controller.store.store import Store
from controller.store.tables import changes, events
from vocab.events import Cleared, Event, Source, epoch_s, rfc3339
from vocab.lines import ConditionLine
from vocab.messages import ClearedItem, EventItem

PAGE = 500  # rows read at a time: SQLite takes as many names in one question
OURS = frozenset({"node_unknown", "node_lost", "placement_black_hole"})  # events that the core itself concludes


class Span(msgspec.Struct, frozen=True):
    """From when to when (seconds since the epoch), the end not included."""

    since: float
    until: float

    def holds(self, column: ColumnElement[float]) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
        """Whether a time lies in it."""
        return column >= self.since, column < self.until


async def count(store: Store, span: Span) -> int:
    """How many events there are. Raises Unreachable."""
    query = select(func.count()).select_from(events).where(*span.holds(events.c.at))
    async with store.reading() as connection:
        return int((await connection.execute(query)).scalar_one())


async def first_at(store: Store, span: Span) -> float | None:
    """When the first of them was; None if there is none. Raises Unreachable."""
    query = select(func.min(events.c.at)).where(*span.holds(events.c.at))
    async with store.reading() as connection:
        at: float | None = (await connection.execute(query)).scalar_one()
    return at


async def told(store: Store, span: Span) -> AsyncIterator[Told]:
    """All that was said, by the time at which it was. Raises Unreachable."""
    ends = _ends(store, span)
    end = await anext(ends, None)
    async for event in _events(store, span):
        while end is not None and end.at < event.at:
            yield end
            end = await anext(ends, None)
        yield event
    while end is not None:
        yield end
        end = await anext(ends, None)


async def _events(store: Store, span: Span) -> AsyncIterator[Told]:
    """The events that nodes said; what the controller concluded itself is concluded again."""
    query = select(events.c.at, events.c.stored, events.c.body).where(*span.holds(events.c.at))
    place = tuple_(events.c.at, events.c.stored)
    after = (span.since, -1)
    while True:
        page = query.where(events.c.at >= after[0], place > after).order_by(*place).limit(PAGE)
        async with store.reading() as connection:
            rows = (await connection.execute(page)).all()
        for row in rows:
            event = msgspec.json.decode(row.body, type=Event)
            if event.at and (event.source is not Source.CORRAL or event.code not in OURS):
                yield Told(epoch_s(event.at), EventItem(_as_first_seen(event)))
        if len(rows) < PAGE:
            return
        after = (rows[-1].at, rows[-1].stored)


def _as_first_seen(event: Event) -> Event:
    """The stored event is the last revision; it came in when it was first seen."""
    return replace(event, rev=1, last_at=event.at)


async def _ends(store: Store, span: Span) -> AsyncIterator[Told]:
    """The signals that returned, of what began within the span."""
    query = select(changes.c.at, changes.c.seq, changes.c.line).where(*span.holds(changes.c.at))
    query = query.where(changes.c.kind == "condition")
    place = tuple_(changes.c.at, changes.c.seq)
    after = (span.since, -1)
    while True:
        page = query.where(changes.c.at >= after[0], place > after).order_by(*place).limit(PAGE)
        async with store.reading() as connection:
            rows = (await connection.execute(page)).all()
        for each in await _cleared(store, span, [change.decode(row.line) for row in rows]):
            yield each
        if len(rows) < PAGE:
            return
        after = (rows[-1].at, rows[-1].seq)


async def _cleared(store: Store, span: Span, lines: Sequence[object]) -> list[Told]:
    ended = [line for line in lines if isinstance(line, ConditionLine) and line.state == "cleared" and line.events]
    said = await _named(store, span, {line.events[-1] for line in ended})
    return [
        Told(line.at, ClearedItem(_as_said(line, event)))
        for line in ended
        if (event := said.get(line.events[-1])) is not None
    ]


async def _named(store: Store, span: Span, names: Iterable[str]) -> dict[str, Event]:
    """These events, as far as they lie in the span."""
    wanted = sorted(names)
    if not wanted:
        return {}
    query = select(events.c.body).where(events.c.id.in_(wanted), *span.holds(events.c.at))
    async with store.reading() as connection:
        bodies = (await connection.execute(query)).scalars().all()
    return {event.id: event for event in (msgspec.json.decode(body, type=Event) for body in bodies)}


def _as_said(line: ConditionLine, event: Event) -> Cleared:
    return Cleared(
        at=rfc3339(line.at),
        node=event.node,
        boot_id=event.boot_id,
        gpu=event.gpu,
        device=line.device,
        code=line.code,
        by="signal",
        event=event.id,
        name=line.subject.replica,
    )
