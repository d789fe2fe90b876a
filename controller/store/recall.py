"""What a restart reads of the past: the decisions, of the events those on which one rests, and the latest of the rest.

Most events of a fleet lead to nothing. A core lets go of them after an hour (``Ledger.forget``), and one that begins
does not take them in. Of a GPU or a node only its last word counts, of however many it has had. So a restart costs what
was decided, and not what was ever seen.
"""

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TypeVar

import msgspec
from sqlalchemy import ColumnElement, func, not_, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.core.fleet.ledger import COUNTED, LOOSE_S
from controller.store import change
from controller.store.change import KIND, Change
from controller.store.tables import changes, events, standing

T = TypeVar("T")

PAGE = 500  # in one question: SQLite takes a few thousand at most
SPARSE = ("event", "state")  # kinds of which not every line counts


class _Rests(msgspec.Struct):
    """Of a condition's or an incident's line only what it rests on."""

    events: tuple[str, ...] = ()
    root: str | None = None


_rests = msgspec.json.Decoder(_Rests)


async def changes_that_count(connection: AsyncConnection) -> AsyncIterator[Change]:
    """In the order in which they were stored. A core that folds these is as one that folded everything and let go."""
    for page in _in_pages(sorted(await _seqs(connection))):
        query = select(changes.c.seq, changes.c.line).where(changes.c.seq.in_(page)).order_by(changes.c.seq)
        for seq, line in (await connection.execute(query)).all():
            yield Change(seq, change.decode(line))


async def _seqs(connection: AsyncConnection) -> set[int]:
    """Those of the lines that count; found by the indices, however long the history is."""
    newest = (await connection.execute(select(func.max(changes.c.at)))).scalar_one() or 0.0
    dense = [kind for kind in KIND.values() if kind not in SPARSE]
    found = await _of(connection, changes.c.kind.in_(dense))
    late = select(changes.c.seq, changes.c.kind).where(changes.c.at >= newest - LOOSE_S)  # by the index of the time
    found |= {seq for seq, kind in (await connection.execute(late)).all() if kind == "event"}
    for names in _in_pages(sorted(await _named(connection))):
        found |= await _of(connection, changes.c.kind == "event", changes.c.key.in_(names))
    found |= await _of(connection, changes.c.kind == "state", not_(_of_machines(changes.c.key)))
    last = select(standing.c.seq).where(standing.c.kind == "state", _of_machines(standing.c.key))
    return found | set((await connection.execute(last)).scalars())


async def _of(connection: AsyncConnection, *which: ColumnElement[bool]) -> set[int]:
    return set((await connection.execute(select(changes.c.seq).where(*which))).scalars())


def _of_machines(key: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether a state is of a GPU or a node. A replica's way counts, too: where it runs, and whether it ever began."""
    return or_(key.startswith("gpu:"), key.startswith("node:"))


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


def _in_pages(named: Iterable[T]) -> Iterator[list[T]]:
    every = list(named)
    for start in range(0, len(every), PAGE):
        yield every[start : start + PAGE]
