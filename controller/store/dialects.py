"""Where things are stored, and all that SQLite and PostgreSQL do differently. Nothing else asks which one it is."""

from pathlib import Path
from typing import Any, ClassVar, Protocol
from urllib.parse import parse_qs, urlsplit

import msgspec
from sqlalchemy import NullPool, Table, create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from controller.store.inline import Writer
from vocab.errors import ConfigError, Unreachable

BUSY_MS = 5000  # a backup or a curious sqlite3 shell holds the lock for less
CONNECT_S = 3.0
ANSWER_S = 6.0  # for one statement: below the 8 s in which an agent hears why its batch was not stored
CACHE_KIB = 32 * 1024  # of pages that decisions touch: with 2 MiB those of 12,500 nodes are read again and again
POOL = 4  # the writer, housekeeping, and two who read; a burst of readers takes as many again
SCHEMES = ("postgresql", "postgres")
SHAPING = 0x636F7272616C  # the key of the lock under which one process at a time changes the tables: "corral"


class Database(Protocol):
    """One place to store. ``str()`` of it may be logged."""

    shared: ClassVar[bool]  # several controllers may work on it
    snapshot: ClassVar[dict[str, Any]]  # options of a transaction that sees one moment

    def insert(self, table: Table) -> Any:
        """An INSERT that knows ON CONFLICT."""
        ...

    def engine(self) -> AsyncEngine:
        """Connections to it; none is opened yet."""
        ...

    def writer(self) -> Writer | None:
        """A connection of its own for decisions, where that is better; it is not opened yet."""
        ...

    async def lock_shape(self, connection: AsyncConnection) -> None:
        """Keep others from changing the tables until this transaction ends."""
        ...

    async def renumber(self, connection: AsyncConnection, table: str) -> None:
        """Go on numbering after the rows that were put into ``table`` with their numbers."""
        ...

    def advice(self, cause: str) -> str:
        """What to do about an error."""
        ...


class Sqlite(msgspec.Struct, frozen=True):
    """One file, one controller."""

    path: Path
    shared: ClassVar[bool] = False
    snapshot: ClassVar[dict[str, Any]] = {}  # a deferred transaction sees the moment of its first read

    def __str__(self) -> str:
        return str(self.path)

    def insert(self, table: Table) -> Any:
        """An INSERT that knows ON CONFLICT."""
        return sqlite.insert(table)

    def engine(self) -> AsyncEngine:
        """Connections to the file."""
        engine = create_async_engine(f"sqlite+aiosqlite:///{self.path}", pool_size=POOL, max_overflow=POOL)
        event.listen(engine.sync_engine, "connect", _set_pragmas)
        event.listen(engine.sync_engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
        return engine

    def writer(self) -> Writer:
        """The connection that does not give each statement to a thread."""
        across = {"check_same_thread": False}  # used by the event loop and by its thread, never at one time
        engine = create_engine(
            f"sqlite:///{self.path}", poolclass=NullPool, connect_args=across, isolation_level="AUTOCOMMIT"
        )
        event.listen(engine, "connect", _set_pragmas)
        event.listen(engine, "connect", lambda raw, _: raw.execute(f"PRAGMA cache_size=-{CACHE_KIB}"))
        return Writer(engine, BUSY_MS)

    async def lock_shape(self, connection: AsyncConnection) -> None:
        """Take the write lock now, not at the first write."""
        await connection.exec_driver_sql("END")
        await connection.exec_driver_sql("BEGIN IMMEDIATE")

    async def renumber(self, connection: AsyncConnection, table: str) -> None:
        """SQLite numbers after the highest by itself."""

    def advice(self, cause: str) -> str:
        """What to do about an error."""
        if "full" in cause or "disk I/O" in cause:
            return "free space on the disk of state_dir; nothing acknowledged is lost and writing resumes by itself"
        if "locked" in cause:
            return "another program holds the database; writing resumes once it lets go"
        return "see the log of the controller"


def _set_pragmas(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin where we say, so that reads are consistent too
    cursor = connection.cursor()
    for setting in (
        "page_size=8192",  # of a new file: an event touches fifteen indices, and a tenth less is written for it
        "journal_mode=WAL",
        "synchronous=FULL",  # NORMAL may lose the last commits in a power cut, and those were acknowledged
        f"busy_timeout={BUSY_MS}",
    ):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()


class Postgres(msgspec.Struct, frozen=True):
    """A PostgreSQL server, 15 or newer, for one controller or several.

    ``dsn`` is a libpq address without a password: that is in ``password_file``, or where PGPASSFILE says.
    ``pooler``: the address is that of pgbouncer in transaction mode (or another pooler that gives a connection only
    for the length of a transaction), so nothing may be prepared on one that outlives it.
    """

    dsn: str
    password_file: Path | None = None
    pooler: bool = False
    shared: ClassVar[bool] = True
    snapshot: ClassVar[dict[str, Any]] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}

    def __str__(self) -> str:
        return self.dsn

    def insert(self, table: Table) -> Any:
        """An INSERT that knows ON CONFLICT."""
        return postgresql.insert(table)

    def engine(self) -> AsyncEngine:
        """Connections to the server. Raises ConfigError if what they need is missing."""
        try:
            import asyncpg  # noqa: F401 - only this database needs it
        except ImportError as error:
            raise ConfigError("database: PostgreSQL needs asyncpg; run: pip install 'corral[postgresql]'") from error
        settings: dict[str, Any] = {"async_creator_fn": self._connect}
        if self.pooler:
            # "": unnamed statements, which live and die within the transaction that uses them
            settings |= {"prepared_statement_cache_size": 0, "prepared_statement_name_func": str}
        return create_async_engine(
            "postgresql+asyncpg://", connect_args=settings, pool_size=POOL, max_overflow=POOL, pool_pre_ping=True,
            pool_timeout=ANSWER_S,
        )  # fmt: skip

    def writer(self) -> None:
        """Its statements wait for the network: one connection is like the other."""

    async def _connect(self) -> Any:
        import asyncpg

        try:
            return await asyncpg.connect(
                self.dsn,
                password=self._password(),
                timeout=CONNECT_S,
                command_timeout=ANSWER_S,
                statement_cache_size=0 if self.pooler else 100,
            )
        except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise Unreachable(
                f"the database {self} refuses a connection: {error}; {self.advice(str(error))}"
            ) from error
        except TimeoutError as error:
            raise Unreachable(f"the database {self} does not answer within {CONNECT_S:g} s; is it running?") from error

    def _password(self) -> str | None:
        """What the file holds; read at each connection, so that it may be changed."""
        if self.password_file is None:
            return None
        path = self.password_file
        try:
            if path.stat().st_mode & 0o007:
                raise ConfigError(f"database_password_file: others can read {path}; run: chmod o-rwx {path}")
            return path.read_text().strip()
        except OSError as error:
            raise ConfigError(f"database_password_file: cannot read {path}: {error.strerror}") from error

    async def lock_shape(self, connection: AsyncConnection) -> None:
        """Wait for whoever changes the tables now; the lock ends with the transaction, so a pooler is no harm."""
        await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": SHAPING})

    async def renumber(self, connection: AsyncConnection, table: str) -> None:
        """Set the sequence of the column ``id``, if the table has one."""
        owned = "SELECT pg_get_serial_sequence(:name, column_name) FROM information_schema.columns"
        named = text(f"{owned} WHERE table_name = :name AND column_name = 'id'")
        sequence = (await connection.execute(named, {"name": table})).scalar_one_or_none()
        if sequence is not None:
            highest = f'SELECT setval(:sequence, coalesce(max(id), 0) + 1, false) FROM "{table}"'  # noqa: S608 - ours
            await connection.execute(text(highest), {"sequence": sequence})

    def advice(self, cause: str) -> str:
        """What to do about an error."""
        for sign, help_ in _ADVICE:
            if sign in cause:
                return help_
        return "see the logs of the controller and of PostgreSQL"


_RESUMES = "nothing acknowledged is lost and writing resumes by itself"
_ADVICE = (
    ("No space left", f"free space on the disk of PostgreSQL; {_RESUMES}"),
    ("could not extend file", f"free space on the disk of PostgreSQL; {_RESUMES}"),
    ("password authentication", "set database_password_file, or PGPASSFILE, to the password of this role"),
    ("does not exist", "create role and database as docs/operate.md says"),
    ("too many", "raise max_connections of PostgreSQL, or use a pooler"),
    ("read-only", "the server is a standby: name its primary, or add target_session_attrs=read-write"),
    ("starting up", f"it starts; {_RESUMES}"),
    ("shutting down", f"it was stopped; {_RESUMES}"),
    ("Connect call failed", f"PostgreSQL does not listen there; {_RESUMES} once it does"),
    ("connection was closed", f"PostgreSQL was stopped or restarted; {_RESUMES}"),
)


def check_dsn(dsn: str) -> None:
    """Raises ValueError if it is no address of PostgreSQL, or holds a password."""
    parts = urlsplit(dsn)
    if parts.scheme not in SCHEMES:
        raise ValueError("database: it must begin with postgresql://, for example postgresql://corral@db1/corral")
    if parts.password is not None or {"password", "sslpassword"} & parse_qs(parts.query).keys():
        raise ValueError("database: a password does not belong into an address: put it into database_password_file")
