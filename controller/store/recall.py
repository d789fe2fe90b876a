"""What a restart reads of the past: all decisions, and of the events those on which one rests, and the latest.

Most events of a fleet lead to nothing. A core lets go of them after an hour (``Ledger.forget``), and one that begins
does not take them in: so a restart costs what was decided, and not what was ever seen.
"""

from collections.abc import AsyncIterator, Iterator

import msgspec
from sqlalchemy import and_, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.core.fleet.ledger import COUNTED, LOOSE_S
from controller.store import change
from controller.store.change import Change
from controller.store.tables import changes, events, standing

PAGE = 2000  # rows read at a time
NAMES = 400  # in one question: SQLite takes a few thousand at most


class _Rests(msgspec.Struct):
    """Of a condition's or an incident's line only what it rests on."""

    events: tuple[str, ...] = ()
    root: str | None = None


_rests = msgspec.json.Decoder(_Rests)


async def changes_that_count(connection: AsyncConnection) -> AsyncIterator[Change]:
    """In the order in which they were stored. A core that folds these is as one that folded everything and let go."""
    newest = (await connection.execute(select(func.max(changes.c.at)))).scalar_one()
    since = (newest or 0.0) - LOOSE_S
    old = await _old_events(connection, since)
    first = 0
    wanted = or_(changes.c.kind != "event", changes.c.at >= since)
    query = select(changes.c.seq, changes.c.line).where(wanted).order_by(changes.c.seq).limit(PAGE)
    while page := (await connection.execute(query.where(changes.c.seq > first))).all():
        for row in page:
            while old and old[-1][0] < row.seq:
                yield _change(*old.pop())
            yield _change(row.seq, row.line)
        first = page[-1].seq
    while old:
        yield _change(*old.pop())


def _change(seq: int, line: str) -> Change:
    return Change(seq, change.decode(line))


async def _old_events(connection: AsyncConnection, since: float) -> list[tuple[int, str]]:
    """The lines of the events on which something rests, as far as they are older; the latest first."""
    found: list[tuple[int, str]] = []
    for names in _in_parts(sorted(await _named(connection))):
        mine = and_(changes.c.kind == "event", changes.c.key.in_(names), changes.c.at < since)
        rows = await connection.execute(select(changes.c.seq, changes.c.line).where(mine))
        found += [(row.seq, row.line) for row in rows]
    return sorted(found, reverse=True)


async def _named(connection: AsyncConnection) -> set[str]:
    """The events that a condition or an incident ever took in, and those of which the core takes something itself."""
    counted = select(events.c.id).where(events.c.code.in_(COUNTED))
    found = set((await connection.execute(counted)).scalars())
    resting = select(standing.c.line).where(standing.c.kind.in_(("condition", "incident")))
    for text in (await connection.execute(resting)).scalars():
        rests = _rests.decode(text)
        found.update(rests.events)
        if rests.root is not None:
            found.add(rests.root)
    return found


def _in_parts(names: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), NAMES):
        yield names[start : start + NAMES]
