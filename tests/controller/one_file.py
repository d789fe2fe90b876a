"""A stand-in for a PostgreSQL that several controllers share: one SQLite file, in one process, without a thread.

The real store and all that controllers tell each other through it (lease, inbox, sightings) run on it unchanged. Its
transactions are one after the other, as the fence makes those of PostgreSQL that decide; what a PostgreSQL does beside
that (locks, sessions that are ended, poolers) has its own tests on the real one. Each controller has its ``Power``: it
can die, lose its connection or stand still at any statement.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec
from sqlalchemy import Connection, CursorResult, Executable, StaticPool, Table, create_engine, event
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from controller.store.inline import Inline
from tests.idle_time import LoopClock

NOW = "CAST(STRFTIME('%s', clock_timestamp()) AS INTEGER)"  # how SQLAlchemy writes ``shared.NOW`` for SQLite


_compiled: dict[Any, Any] = {}  # statements, for all engines: each test has many, of which each would write its own


class Gone(OSError):
    """The process has died at this statement, or its connection."""


class Stored(msgspec.Struct, frozen=True):
    """A transaction of a decision: who stored it, and who held the lease then."""

    turn: int
    by: str
    holder: str


class Fate(Enum):
    """What becomes of a process at a statement."""

    DIES = 1
    IS_CUT_OFF = 2  # its connection is lost there, and it lives on
    STANDS_STILL = 3  # before its next transaction


class Power:
    """What may happen to a controller, at its statements. ``stored``: of all controllers, what they decided."""

    def __init__(self, name: str, stored: list[Stored]) -> None:
        self.name = name
        self.stored = stored
        self.goes = asyncio.Event()  # it does not stand still
        self.goes.set()
        self.dead = asyncio.Event()
        self._left: int | None = None
        self._fate = Fate.DIES

    def arm(self, after: int, fate: Fate) -> None:
        """What becomes of it at the statement after so many."""
        self._left, self._fate = after, fate

    def disarm(self) -> None:
        """What was to come does not."""
        self._left = None
        self.goes.set()

    def step(self) -> None:
        """One more statement. Raises Gone."""
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                self._left = None
                self._meet()
        if self.dead.is_set():
            raise Gone("the process is dead")

    def _meet(self) -> None:
        if self._fate is Fate.STANDS_STILL:
            self.goes.clear()
        elif self._fate is Fate.IS_CUT_OFF:
            raise Gone("the connection is lost")
        else:
            self.dead.set()

    def note(self, connection: Connection) -> None:
        """Take down who decided, if this transaction holds a decision."""
        turn = connection.exec_driver_sql("SELECT value FROM counters WHERE name = 'turn'").scalar_one()
        if turn != (self.stored[-1].turn if self.stored else 0):
            holder = connection.exec_driver_sql("SELECT holder FROM lease").scalar_one()
            self.stored.append(Stored(turn, self.name, holder))


class OneFile(msgspec.Struct, frozen=True):
    """The file, as one controller reaches it."""

    path: Path
    power: Power
    shared: ClassVar[bool] = True
    snapshot: ClassVar[dict[str, Any]] = {}

    def __str__(self) -> str:
        return str(self.path)

    def insert(self, table: Table) -> Any:
        """An INSERT that knows ON CONFLICT."""
        return sqlite.insert(table)

    def engine(self) -> AsyncEngine:
        """Connections to it."""
        return cast("AsyncEngine", _Engine(self.path, self.power))

    def writer(self) -> None:
        """As with PostgreSQL, one connection is like the other."""

    async def lock_shape(self, connection: AsyncConnection) -> None:
        """Its tables do not change."""

    async def renumber(self, connection: AsyncConnection, table: str) -> None:
        """SQLite numbers after the highest by itself."""

    def advice(self, cause: str) -> str:
        """What to do about an error."""
        return "this is a test"


class _Engine:
    """As much of an ``AsyncEngine`` as the store uses."""

    def __init__(self, path: Path, power: Power) -> None:
        self.sync_engine = create_engine(
            f"sqlite:///{path}",
            poolclass=StaticPool,
            isolation_level="AUTOCOMMIT",
            execution_options={"compiled_cache": _compiled},
        )
        event.listen(self.sync_engine, "connect", _prepare)
        event.listen(self.sync_engine, "before_cursor_execute", _as_sqlite, retval=True)
        self._power = power

    def execution_options(self, **_: Any) -> "_Engine":
        """They are PostgreSQL's."""
        return self

    async def dispose(self) -> None:
        """Close the connection."""
        self.sync_engine.dispose()

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """A transaction; whatever else the process does may come before it and after it."""
        await asyncio.sleep(0)
        await self._power.goes.wait()
        self._power.step()
        with self.sync_engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                yield cast("AsyncConnection", _Stepping(connection, self._power))
                self._power.step()
                self._power.note(connection)
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                connection.exec_driver_sql("ROLLBACK")
                raise
        self._power.step()  # it is stored, and who asked does not hear of it
        await asyncio.sleep(0)


class _Stepping(Inline):
    """Each statement may be the last."""

    def __init__(self, connection: Connection, power: Power) -> None:
        super().__init__(connection)
        self._power = power

    async def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[Any]:
        """The statement, at once."""
        self._power.step()
        return await super().execute(statement, parameters)

    async def exec_driver_sql(self, statement: str, parameters: Any = None) -> CursorResult[Any]:
        """SQL as the driver takes it, at once."""
        self._power.step()
        return await super().exec_driver_sql(statement, parameters)


def _prepare(connection: Any, _: object) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=OFF")
    connection.create_function("seconds", 0, LoopClock().now)


def _as_sqlite(_c: object, _cursor: object, statement: str, parameters: Any, *_: object) -> tuple[str, Any]:
    """What only PostgreSQL understands: there is nobody's lock to wait for, and no session to end."""
    if statement.startswith("SET LOCAL"):
        return "SELECT 1", ()
    if "pg_terminate_backend" in statement:
        return "SELECT 1 WHERE 0", ()
    return statement.replace(NOW, "seconds()"), parameters
