"""The connection over which decisions are written to SQLite: statements run where they are asked, waiting in a thread.

A transaction has twenty statements, each of some microseconds. A thread would give each of them a turn of the event
loop and a wait for the interpreter's lock, which beside 1,250 heartbeats a second makes 50 ms of one. So only what
waits goes to a thread: for the lock of the file, where another program has it, and for the disk at the commit. In a
transaction of very many rows others have their turn between the statements.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

from sqlalchemy import Connection, CursorResult, Engine, Executable
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

TURN_S = 0.01  # of statements in a row: the rows of 500 records take three times as long


class Inline:
    """As much of an ``AsyncConnection`` as a transaction uses."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._since = time.perf_counter()

    @property
    def dialect(self) -> Dialect:
        """Which SQL it speaks."""
        return self._connection.dialect

    async def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[Any]:
        """The statement, at once."""
        return cast("CursorResult[Any]", self._connection.execute(statement, parameters))

    async def exec_driver_sql(self, statement: str, parameters: Any = None) -> CursorResult[Any]:
        """SQL as the driver takes it, at once."""
        result = self._connection.exec_driver_sql(statement, parameters)
        if time.perf_counter() - self._since > TURN_S:
            await asyncio.sleep(0)
            self._since = time.perf_counter()
        return result


class Writer:
    """One connection and one thread; what the thread is given it does in order, also after its caller has gone.

    ``patience_ms``: how long it waits for the lock of the file.
    """

    def __init__(self, engine: Engine, patience_ms: int) -> None:
        self.engine = engine
        self._patience_ms = patience_ms
        self._thread: ThreadPoolExecutor | None = None
        self._connection: Connection | None = None

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """A transaction, committed at the end of the block; one at a time. Raises SQLAlchemyError."""
        try:
            if not self._begins_at_once():
                await self._aside(self._begin)
            assert self._connection is not None
            yield cast("AsyncConnection", Inline(self._connection))
            await self._aside(self._commit)
        except BaseException:
            await self._surely(self._give_up)
            raise

    async def close(self) -> None:
        """Close the connection and end the thread; whoever begins then connects anew."""
        await self._aside(self._give_up)
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()

    async def _aside(self, act: Callable[[], None]) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="commit")
        await asyncio.get_running_loop().run_in_executor(self._thread, act)

    async def _surely(self, act: Callable[[], None]) -> None:
        """Have it done before anybody else uses the connection, however often the caller is cancelled meanwhile."""
        doing = asyncio.ensure_future(self._aside(act))
        while not doing.done():
            with suppress(asyncio.CancelledError):  # whoever cancels gets the error that led here
                await asyncio.wait([doing])
        doing.result()

    def _begins_at_once(self) -> bool:
        """Whether nobody had the lock; the connection is the thread's to open."""
        if self._connection is None:
            return False
        try:
            self._connection.exec_driver_sql("BEGIN IMMEDIATE")
        except OperationalError:
            return False
        return True

    def _begin(self) -> None:
        if self._connection is None:
            self._connection = self.engine.connect()
        self._patiently("BEGIN IMMEDIATE")

    def _commit(self) -> None:
        self._patiently("COMMIT")  # where the file system allows no WAL, it waits for readers

    def _patiently(self, statement: str) -> None:
        assert self._connection is not None
        self._connection.exec_driver_sql(f"PRAGMA busy_timeout={self._patience_ms}")
        self._connection.exec_driver_sql(statement)
        self._connection.exec_driver_sql("PRAGMA busy_timeout=0")

    def _give_up(self) -> None:
        """Undo what is not committed; the next transaction connects anew."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with suppress(SQLAlchemyError):
            if connection.connection.dbapi_connection is not None:
                connection.connection.dbapi_connection.rollback()
            connection.close()
