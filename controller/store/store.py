"""The store's writing side: one transaction at a time, whole or not at all, and on the disk when it returns.

``commit`` numbers the lines from the counter row that it updates first, so the order of ``seq`` is the
order of commits. Every failure comes out as Unreachable: whoever asked tries again later.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import msgspec
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.store.dialects import Database
from controller.store.form import Unreadable
from controller.store.migrate import upgrade
from controller.store.records import Write
from controller.store.shared import fence
from controller.store.transaction import Transaction
from vocab.errors import Unreachable

REFUSED = ("22", "23", "54")  # classes of SQLSTATE: wrong data, a constraint, a limit of the program


class Unstorable(Unreachable):
    """The database answers, and does not take this."""


class Store:
    """An open database. Only the conductor and housekeeping write; anybody reads."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.engine = database.engine()
        self._reader = self.engine.execution_options(**database.snapshot)
        self._writer = database.writer()
        self._writing = asyncio.Lock()
        self.term: int | None = None  # in which this controller decides, where several share the database

    @property
    def engines(self) -> list[Engine]:
        """All of them, for who listens to what they do."""
        return [self.engine.sync_engine, *([self._writer.engine] if self._writer is not None else [])]

    @classmethod
    async def open(cls, database: Database) -> "Store":
        """Bring the database to our shape and open it. Raises ConfigError."""
        store = cls(database)
        try:
            await upgrade(store.engine, database)
        except BaseException:
            await store.close()
            raise
        return store

    async def close(self) -> None:
        """Close all connections."""
        if self._writer is not None:
            await self._writer.close()
        await self.engine.dispose()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """One consistent view of the database. Raises Unreachable."""
        with self._named("read"):
            async with self._reader.begin() as connection:
                yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """One transaction, committed at the end of the block. Raises Unreachable."""
        with self._named("write"):
            async with self._writing, self.engine.begin() as connection:
                yield connection

    @asynccontextmanager
    async def noting(self) -> AsyncIterator[AsyncConnection]:
        """A transaction beside others: what controllers tell each other. Raises Unreachable."""
        with self._named("write"):
            async with self.engine.begin() as connection:
                yield connection

    @asynccontextmanager
    async def deciding(self) -> AsyncIterator[AsyncConnection]:
        """As ``writing``, for what only the controller that decides may write. Raises Deposed if another one does."""
        async with self.writing() as connection:
            if self.database.shared:
                await fence(connection, self.term)
            yield connection

    async def commit(self, write: Write) -> int:
        """Store ``write`` and answer the ``seq`` of its last line (of the last change, if it has none)."""
        async with self._committing() as connection:
            return await Transaction(connection, self.database.insert).store(write)

    @asynccontextmanager
    async def _committing(self) -> AsyncIterator[AsyncConnection]:
        """As ``deciding``, over the connection that is for it."""
        if self._writer is None:
            async with self.deciding() as connection:
                yield connection
        else:
            with self._named("write"):
                async with self._writing, self._writer.begin() as connection:
                    yield connection

    @contextmanager
    def _named(self, act: str) -> Iterator[None]:
        """Turn what the database raises into Unreachable that says what to do."""
        try:
            yield
        except msgspec.ValidationError as error:
            raise Unreadable(
                f"the store holds what this version cannot read: {error}; a newer one has written it: upgrade this"
                " controller too"
            ) from error
        except (SQLAlchemyError, OSError) as error:
            cause = str(getattr(error, "orig", None) or error) or f"no answer in time ({type(error).__name__})"
            state = getattr(getattr(error, "orig", None), "sqlstate", None) or ""
            kind = Unstorable if state[:2] in REFUSED else Unreachable
            raise kind(f"the store cannot {act}: {cause}; {self.database.advice(cause)}") from error

    async def probe(self) -> None:
        """Write and read one row: whether the disk takes anything. Raises Unreachable."""
        async with self._committing() as connection:
            await Transaction(connection, self.database.insert).advance("events", 1)
