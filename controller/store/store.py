"""The store's writing side: one transaction at a time, whole or not at all, and on the disk when it returns.

``commit`` numbers the lines from the counter row that it updates first, so the order of ``seq`` is the
order of commits. Every failure comes out as Unreachable: whoever asked tries again later.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import event, select, update
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from controller.store import change
from controller.store.migrate import upgrade
from controller.store.records import Write
from controller.store.tables import (
    addresses,
    audit,
    changes,
    counters,
    desired,
    events,
    nodes,
    positions,
    received,
    standing,
)
from vocab.errors import Unreachable
from vocab.events import Event, epoch_s
from vocab.lines import AnyLine

log = logging.getLogger(__name__)

BUSY_MS = 5000  # a backup or a curious sqlite3 shell holds the lock for less


class Store:
    """An open database. Only the conductor and housekeeping write; anybody reads."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self._writing = asyncio.Lock()

    @classmethod
    async def open(cls, database: Path) -> "Store":
        """Bring the file to our shape and open it. Raises ConfigError."""
        await asyncio.to_thread(upgrade, database)
        engine = create_async_engine(f"sqlite+aiosqlite:///{database}", pool_size=4, max_overflow=4)
        event.listen(engine.sync_engine, "connect", _settings)
        event.listen(engine.sync_engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
        return cls(engine)

    async def close(self) -> None:
        """Close all connections."""
        await self.engine.dispose()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """One consistent view of the database. Raises Unreachable."""
        with _named("read"):
            async with self.engine.begin() as connection:
                yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """One transaction, committed at the end of the block. Raises Unreachable."""
        with _named("write"):
            async with self._writing, self.engine.begin() as connection:
                yield connection

    async def commit(self, write: Write) -> int:
        """Store ``write`` and answer the ``seq`` of its last line (of the last change, if it has none)."""
        async with self.writing() as connection:
            last = await _advance(connection, "seq", len(write.lines))
            await _lines(connection, last - len(write.lines) + 1, write.lines)
            await _events(connection, write.events)
            await _put(connection, nodes, ({"node": f.node, "at": write.at, "body": _json(f)} for f in write.facts))
            await _put(connection, received, ({**msgspec.to_builtins(r), "at": write.at} for r in write.received))
            await _put(connection, positions, (msgspec.to_builtins(position) for position in write.positions))
            await _put(connection, addresses, ({"node": a.node, "body": _json(a.urls)} for a in write.addresses))
            await _put(
                connection,
                desired,
                ({"node": d.node, "generation": d.generation, "body": _json(d)} for d in write.desired),
            )
            if write.audits:
                await connection.execute(audit.insert(), [msgspec.to_builtins(entry) for entry in write.audits])
            if write.epoch is not None:
                await connection.execute(update(counters).where(counters.c.name == "epoch").values(value=write.epoch))
        return last

    async def probe(self) -> None:
        """Write and read one row: whether the disk takes anything. Raises Unreachable."""
        async with self.writing() as connection:
            await _advance(connection, "events", 1)


class _named:  # noqa: N801 - reads as a word of the with statement
    """Turn what the database raises into Unreachable that says what to do."""

    def __init__(self, act: str) -> None:
        self._act = act

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, SQLAlchemyError | OSError):
            cause = getattr(error, "orig", None) or error
            raise Unreachable(f"the store cannot {self._act}: {cause}; {_advice(str(cause))}") from error


def _advice(cause: str) -> str:
    if "full" in cause:
        return "free space on the disk of state_dir; nothing acknowledged is lost and writing resumes by itself"
    if "locked" in cause:
        return "another program holds the database; writing resumes once it lets go"
    return "see the log of the controller"


def _settings(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin where we say, so that reads are consistent too
    cursor = connection.cursor()
    for setting in (
        "journal_mode=WAL",
        "synchronous=FULL",  # NORMAL may lose the last commits in a power cut, and those were acknowledged
        f"busy_timeout={BUSY_MS}",
    ):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


async def _advance(connection: AsyncConnection, name: str, by: int) -> int:
    """Move a counter; being the first statement, it also takes the write lock."""
    step = update(counters).where(counters.c.name == name).values(value=counters.c.value + by)
    await connection.execute(step)
    found = await connection.execute(select(counters.c.value).where(counters.c.name == name))
    return int(found.scalar_one())


async def _lines(connection: AsyncConnection, first: int, lines: Sequence[AnyLine]) -> None:
    if not lines:
        return
    rows = [change.encode(seq, line) for seq, line in enumerate(lines, first)]
    await connection.execute(changes.insert(), rows)
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
    await _put(connection, standing, latest.values())


async def _put(connection: AsyncConnection, table: Any, rows: Iterable[dict[str, Any]]) -> None:
    """Insert, or replace the row with the same primary key; one statement, many parameters."""
    given = list(rows)
    if not given:
        return
    statement = insert(table)
    keys = [column.name for column in table.primary_key]
    rest = {name: statement.excluded[name] for name in given[0] if name not in keys}
    await connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=rest), given)


async def _events(connection: AsyncConnection, given: Sequence[Event]) -> None:
    if not given:
        return
    last = await _advance(connection, "events", len(given))
    statement = insert(events)
    growing = {name: statement.excluded[name] for name in ("rev", "gpu", "code", "severity", "body")}
    grow = statement.on_conflict_do_update(
        index_elements=["id"], set_=growing, where=events.c.rev < statement.excluded.rev
    )
    await connection.execute(
        grow,
        [
            {
                "id": event.id,
                "rev": event.rev,
                "stored": stored,
                "at": epoch_s(event.at) if event.at else 0.0,
                "node": event.node,
                "gpu": event.gpu,
                "code": event.code,
                "severity": event.severity.rank,
                "body": _json(event),
            }
            for stored, event in enumerate(given, last - len(given) + 1)
        ],
    )
