"""What one transaction writes: the rows of a ``Write``, each kind in one statement with many parameters."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import msgspec
from sqlalchemy import Table, bindparam, update
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.store import bulk, cards, change, shared
from controller.store.bulk import Columns
from controller.store.policies import as_row
from controller.store.records import Received, Write
from controller.store.tables import (
    addresses,
    audit,
    changes,
    counters,
    desired,
    events,
    nodes,
    policies,
    positions,
    received,
    standing,
)
from vocab.events import Event, epoch_s
from vocab.lines import AnyLine

Insert = Callable[[Any], Any]
CHANGES = tuple(changes.c.keys())
EVENTS = tuple(events.c.keys())
RECEIVED = tuple(received.c.keys())
_STEP = (
    update(counters)
    .where(counters.c.name == bindparam("counter"))
    .values(value=counters.c.value + bindparam("by"))
    .returning(counters.c.value)
)


class Transaction:
    """An open transaction that writes. ``insert`` is the dialect's INSERT that knows ON CONFLICT."""

    def __init__(self, connection: AsyncConnection, insert: Insert) -> None:
        self._connection = connection
        self._insert = insert

    async def store(self, write: Write) -> int:
        """Everything of ``write``; the ``seq`` of its last line (of the last change, if it has none)."""
        turn = await self.advance("turn", 1)
        last = await self.advance("seq", len(write.lines))
        await self._lines(last - len(write.lines) + 1, write.lines)
        await self._events(write.events)
        await self.put(nodes, ({"node": f.node, "at": write.at, "body": _json(f), "turn": turn} for f in write.facts))
        told = write.facts if write.inventories is None else write.inventories
        await cards.settle(self._connection, self.put, told, write.at)
        await self._received(write.received, write.at)
        await self.put(positions, (msgspec.to_builtins(position) for position in write.positions))
        await self.put(addresses, ({"node": a.node, "body": _json(a.urls), "turn": turn} for a in write.addresses))
        await self.put(
            desired,
            ({"node": d.node, "generation": d.generation, "body": _json(d), "turn": turn} for d in write.desired),
        )
        if write.adoptions:
            await self._connection.execute(policies.insert(), [as_row(adoption) for adoption in write.adoptions])
        if write.audits:
            await self._connection.execute(audit.insert(), [msgspec.to_builtins(entry) for entry in write.audits])
        if write.epoch is not None:
            epoch = update(counters).where(counters.c.name == "epoch")
            await self._connection.execute(epoch.values(value=write.epoch))
        await shared.settle(self._connection, write.taken, write.answers)
        return last

    async def advance(self, name: str, by: int) -> int:
        """Move a counter. Its row stays locked until the end, so whoever numbers by it commits in that order."""
        return int((await self._connection.execute(_STEP, {"counter": name, "by": by})).scalar_one())

    async def put(self, table: Table, rows: Iterable[dict[str, Any]]) -> None:
        """Insert, or replace the row with the same primary key."""
        given = list(rows)
        if not given:
            return
        columns = tuple(each.name for each in table.c if each.name in given[0])  # in the order in which SQL names them
        values = (tuple(row[name] for name in columns) for row in given)
        await bulk.execute(self._connection, table, columns, partial(self._replace, table, columns), values)

    def _replace(self, table: Table, columns: Columns) -> Any:
        statement = self._insert(table)
        keys = [column.name for column in table.primary_key]
        rest = {name: statement.excluded[name] for name in columns if name not in keys}
        return statement.on_conflict_do_update(index_elements=keys, set_=rest)

    async def _lines(self, first: int, lines: Sequence[AnyLine]) -> None:
        if not lines:
            return
        rows = [change.encode(seq, line) for seq, line in enumerate(lines, first)]
        values = (tuple(row.values()) for row in rows)
        await bulk.execute(self._connection, changes, CHANGES, changes.insert, values)
        latest = {
            (row["kind"], row["key"]): {
                "kind": row["kind"],
                "key": row["key"],
                "seq": row["seq"],
                "finished": change.finished(line),
                "line": row["line"],
            }
            for row, line in zip(rows, lines, strict=True)
            if row["kind"] not in {"event", "final"}
        }
        await self.put(standing, latest.values())

    async def _events(self, given: Sequence[Event]) -> None:
        if not given:
            return
        last = await self.advance("events", len(given))
        rows = (_event(event, stored) for stored, event in enumerate(given, last - len(given) + 1))
        await bulk.execute(self._connection, events, EVENTS, self._grow, rows)

    def _grow(self) -> Any:
        statement = self._insert(events)
        growing = {name: statement.excluded[name] for name in ("rev", "gpu", "code", "severity", "body")}
        return statement.on_conflict_do_update(
            index_elements=["id"], set_=growing, where=events.c.rev < statement.excluded.rev
        )

    async def _received(self, given: Sequence[Received], at: float) -> None:
        rows = ((each.node, each.position, each.digest, at) for each in given)
        await bulk.execute(self._connection, received, RECEIVED, partial(self._replace, received, RECEIVED), rows)


def _event(event: Event, stored: int) -> tuple[Any, ...]:
    at, rank = epoch_s(event.at) if event.at else 0.0, event.severity.rank
    return event.id, event.rev, stored, at, event.node, event.gpu, event.code, rank, _json(event)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
