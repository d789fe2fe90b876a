"""The whole store as one file, and back: the same form for both databases, so that it also moves from one to the other.

A gzip of JSON lines: a head with the shape's revision, then each table (its name and columns) and its rows as arrays,
and an end with their count, without which the file is not whole. What controllers say to each other from second to
second (the lease, sightings) is not in it. It is taken at one moment, while controllers run.
"""

import gzip
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, MetaData, func, inspect, select, text, update
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from controller.store.dialects import Database
from controller.store.migrate import head, reshape
from controller.store.shared import HELD_S, NOW
from controller.store.tables import counters, lease, metadata, sightings
from vocab.errors import ConfigError, InputError, Unreachable

FORM = 1
ROWS = 500  # in one statement
LEFT_OUT = {lease.name, sightings.name}


class Head(msgspec.Struct, frozen=True):
    """The first line."""

    corral_backup: int
    revision: str


class Rows(msgspec.Struct, frozen=True):
    """The line before a table's rows."""

    table: str
    columns: tuple[str, ...]


class End(msgspec.Struct, frozen=True):
    """The last line: how many rows there are."""

    rows: int


async def backup(database: Database, path: Path) -> int:
    """Write everything to ``path``, which is replaced once it is whole; how many rows. Raises CorralError."""
    async with _connected(database) as engine:
        reader = engine.execution_options(**database.snapshot)
        async with reader.begin() as connection:
            revision = await _revision(connection)
            if revision != head():
                raise ConfigError(f"database {database} has another shape than this version: start its controller once")
            unfinished = path.with_name(f"{path.name}.unfinished")
            try:
                rows = await _write(connection, unfinished, revision)
                unfinished.replace(path)
            except OSError as error:
                raise InputError(f"{path}: cannot be written: {error.strerror}") from error
            finally:
                unfinished.unlink(missing_ok=True)
    return rows


async def _write(connection: AsyncConnection, path: Path, revision: str) -> int:
    rows = 0
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as raw:
        with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=3) as out:
            _line(out, Head(FORM, revision))
            for table in metadata.sorted_tables:
                if table.name not in LEFT_OUT:
                    _line(out, Rows(str(table.name), tuple(str(column.name) for column in table.columns)))
                    found = await connection.stream(select(table).order_by(*table.primary_key))
                    async for row in found:
                        _line(out, tuple(row))
                        rows += 1
            _line(out, End(rows))
        raw.flush()
        os.fsync(raw.fileno())
    return rows


def _line(out: gzip.GzipFile, value: Any) -> None:
    out.write(msgspec.json.encode(value) + b"\n")


async def restore(database: Database, path: Path, now: float) -> int:
    """Put the file in place of all that the database has, in one transaction; how many rows. Raises CorralError.

    The epoch rises above every number that any life of this database has used, and so does the term of the lease:
    no node takes a new order for an old one, and a controller that slept through this decides nothing.
    """
    revision = whole(path)
    async with _connected(database) as engine, engine.begin() as connection:
        await database.lock_shape(connection)
        if await connection.run_sync(_is_held):
            raise ConfigError(f"a controller decides on {database}: stop all controllers, then restore")
        await connection.run_sync(_empty)
        await reshape(connection, database, revision)
        rows = await _load(connection, database, path)
        await reshape(connection, database, "head")
        epoch = update(counters).where(counters.c.name == "epoch")
        await connection.execute(epoch.values(value=max(int(now), await _epoch(connection) + 1)))
        await connection.execute(update(lease).values(term=int(now)))
    return rows


async def _load(connection: AsyncConnection, database: Database, path: Path) -> int:
    shape = MetaData()
    await connection.run_sync(shape.reflect)
    rows = 0
    for part, lines in _parts(path):
        table = shape.tables[part.table]
        await connection.execute(table.delete())  # what the steps have put there
        while chunk := [dict(zip(part.columns, row, strict=True)) for row in islice(lines, ROWS)]:
            await connection.execute(table.insert(), chunk)
            rows += len(chunk)
        await database.renumber(connection, part.table)
    return rows


def _parts(path: Path) -> Iterator[tuple[Rows, Iterator[list[Any]]]]:
    """Each table with its rows, which must be read before the next table is."""
    with gzip.open(path, "rb") as file:
        file.readline()
        line = file.readline()
        while line.startswith(b'{"table"'):
            part, line_after = msgspec.json.decode(line, type=Rows), [b""]
            yield part, _rows(file, line_after)
            line = line_after[0]


def _rows(file: Any, line_after: list[bytes]) -> Iterator[list[Any]]:
    for line in file:
        if not line.startswith(b"["):
            line_after[0] = line
            return
        yield msgspec.json.decode(line)


def whole(path: Path) -> str:
    """The revision of a backup that is whole; reads all of it. Raises InputError if it is not, or is none."""
    try:
        with gzip.open(path, "rb") as file:
            first = msgspec.json.decode(file.readline(), type=Head)
            rows, last = 0, b""
            for last in file:
                rows += last.startswith(b"[")
            if msgspec.json.decode(last, type=End).rows == rows and first.corral_backup == FORM:
                return first.revision
    except (OSError, EOFError, msgspec.DecodeError) as error:
        raise InputError(f"{path} is not a whole backup: {error}") from error
    raise InputError(f"{path} is not a whole backup of this form")


def _is_held(connection: Connection) -> bool:
    """Whether a controller has renewed the lease of late."""
    if not inspect(connection).has_table(lease.name) or connection.dialect.name == "sqlite":
        return False
    return bool(connection.execute(select(func.count()).where(NOW - lease.c.renewed < HELD_S)).scalar_one())


def _empty(connection: Connection) -> None:
    there = MetaData()
    there.reflect(connection)
    there.drop_all(connection)


async def _epoch(connection: AsyncConnection) -> int:
    found = await connection.execute(select(counters.c.value).where(counters.c.name == "epoch"))
    return int(found.scalar_one())


async def _revision(connection: AsyncConnection) -> str:
    if not await connection.run_sync(lambda inside: inspect(inside).has_table("alembic_version")):
        return ""
    return str((await connection.execute(text("SELECT version_num FROM alembic_version"))).scalar_one())


@asynccontextmanager
async def _connected(database: Database) -> AsyncIterator[AsyncEngine]:
    """Its connections. Raises Unreachable for what the database refuses."""
    engine = database.engine()
    try:
        yield engine
    except DBAPIError as error:
        said = str(error.orig)
        raise Unreachable(f"the database {database} refuses: {said}; {database.advice(said)}") from error
    except SQLAlchemyError as error:
        raise Unreachable(f"the database {database} cannot be used: {error}") from error
    finally:
        await engine.dispose()
