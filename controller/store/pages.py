"""Histories in pages, the latest first to be asked for: what lies before a place, newest at the end of a page."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from sqlalchemy import Select, func, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.store import change
from controller.store.records import Audit
from controller.store.tables import audit, events, standing
from vocab.events import Event, Severity
from vocab.lines import AnyLine

CHUNK = 500  # rows read at a time where a filter looks into lines
NARROW = 5000  # events of a time that are looked at one by one: tens of milliseconds
LOOKED_AT = 20 * CHUNK  # rows after which a page ends, full or not: no filter reads a whole history at once


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which events are wanted: those that match everything given; times are seconds since the epoch."""

    gpu: str | None = None
    node: str | None = None
    code: str | None = None
    severity: Severity | None = None  # this one or worse
    since: float | None = None
    until: float | None = None


async def events_before(
    connection: AsyncConnection, wanted: EventFilter, place: int | None, limit: int, *, narrow: int = NARROW
) -> tuple[list[Event], int | None]:
    """At most ``limit`` events stored before ``place``, as last revised, and the place of the next page, if any.

    ``narrow``: so many events of a time are looked at one by one; of more, the newest are looked for.
    """
    by_time = await _is_narrow(connection, wanted, narrow)
    query = _matching(wanted, by_time=by_time).limit(limit + 1)
    query = query.order_by((events.c.stored + 0 if by_time else events.c.stored).desc())  # + 0: not by its index
    if place is not None:
        query = query.where(events.c.stored < place)
    if wanted.severity is not None and by_time:
        query = query.where(events.c.severity >= wanted.severity.rank)
    elif wanted.severity is not None:
        query = _as_bad_as(wanted.severity, query, limit + 1)
    rows = (await connection.execute(query)).all()
    found = rows[:limit]
    return (
        [msgspec.json.decode(row.body, type=Event) for row in reversed(found)],
        found[-1].stored if len(rows) > limit else None,
    )


def _matching(wanted: EventFilter, *, by_time: bool) -> Select[Any]:
    """By the index of the time if ``by_time``, else by that of the rarest thing that is asked for: the first of these.

    A database that has never counted its rows takes any; a function of a column keeps it from that column's index.
    """
    query = select(events.c.stored, events.c.body)
    keyed = by_time
    for name in ("gpu", "node", "code"):
        value = getattr(wanted, name)
        if value is not None:
            query = query.where((func.coalesce(events.c[name], "") if keyed else events.c[name]) == value)
            keyed = True
    if wanted.since is not None:
        query = query.where(events.c.at >= wanted.since)
    return query if wanted.until is None else query.where(events.c.at < wanted.until)


async def _is_narrow(connection: AsyncConnection, wanted: EventFilter, most: int) -> bool:
    """Whether few events are of the time that is asked for. Of one GPU or node there are few anyway."""
    if wanted.gpu is not None or wanted.node is not None or (wanted.since is None and wanted.until is None):
        return False
    some = select(events.c.at).limit(most + 1)
    if wanted.since is not None:
        some = some.where(events.c.at >= wanted.since)
    if wanted.until is not None:
        some = some.where(events.c.at < wanted.until)
    return int((await connection.execute(select(func.count()).select_from(some.subquery()))).scalar_one()) <= most


def _as_bad_as(least: Severity, query: Select[Any], limit: int) -> Select[Any]:
    """The newest of ``query`` of this severity or worse: of each severity by its index, for the bad ones are few."""
    ranks = [each.rank for each in Severity if each.rank >= least.rank]
    each = union_all(*(select(query.where(events.c.severity == rank).subquery()) for rank in ranks)).subquery()
    return select(each).order_by(each.c.stored.desc()).limit(limit)


async def lines_before(
    connection: AsyncConnection,
    kind: str,
    place: int | None,
    limit: int,
    *,
    finished: bool | None = None,
    matches: Callable[[Any], bool] = lambda _: True,
) -> tuple[list[AnyLine], int | None]:
    """The last line of each thing of this kind that was said before ``place``; a page may be short and not the last."""
    found: list[AnyLine] = []
    for _ in range(LOOKED_AT // CHUNK):
        rows = await _standing(connection, kind, finished, place)
        for row in rows:
            line = change.decode(row.line)
            if matches(line):
                if len(found) == limit:
                    return list(reversed(found)), place
                found.append(line)
            place = row.seq
        if len(rows) < CHUNK:
            return list(reversed(found)), None
    return list(reversed(found)), place


async def _standing(connection: AsyncConnection, kind: str, finished: bool | None, place: int | None) -> Sequence[Any]:
    query = select(standing.c.seq, standing.c.line).where(standing.c.kind == kind)
    if finished is not None:
        query = query.where(standing.c.finished == finished)
    if place is not None:
        query = query.where(standing.c.seq < place)
    return (await connection.execute(query.order_by(standing.c.seq.desc()).limit(CHUNK))).all()


async def audits_before(
    connection: AsyncConnection, place: int | None, limit: int, *, act: str | None = None
) -> tuple[list[Audit], int | None]:
    """At most ``limit`` entries before ``place``, and the place of the next page, if any."""
    query = select(audit).order_by(audit.c.id.desc()).limit(limit + 1)
    if act is not None:
        query = query.where(audit.c.act == act)
    if place is not None:
        query = query.where(audit.c.id < place)
    rows = (await connection.execute(query)).all()
    found = rows[:limit]
    entries = [Audit(row.at, row.actor, row.act, row.subject, row.reason, row.outcome) for row in reversed(found)]
    return entries, found[-1].id if len(rows) > limit else None
