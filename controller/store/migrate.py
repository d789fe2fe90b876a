"""Bring a database to the shape that this version needs, before anything else uses it."""

import logging
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from controller.store.dialects import Database
from vocab.errors import ConfigError, Unreachable

SCRIPTS = Path(__file__).parent.parent / "migrations"


async def upgrade(engine: AsyncEngine, database: Database, to: str = "head") -> None:
    """Take every step that is missing, all in one transaction. Raises ConfigError if that cannot be, saying why."""
    try:
        async with engine.begin() as connection:
            await database.lock_shape(connection)
            await reshape(connection, database, to)
    except DBAPIError as error:
        raise ConfigError(f"database {database} cannot be used: {error.orig}") from error
    except (SQLAlchemyError, OSError) as error:
        raise ConfigError(f"database {database} cannot be used: {error}") from error
    except Unreachable as error:
        raise ConfigError(str(error)) from error


async def reshape(connection: AsyncConnection, database: Database, to: str) -> None:
    """Take the steps up to ``to`` within the caller's transaction. Raises ConfigError, or what the database does."""
    logging.getLogger("alembic").setLevel(logging.WARNING)  # before the import, which logs too
    from alembic.util.exc import CommandError

    try:
        await connection.run_sync(_upgrade, to)
    except CommandError as error:
        raise ConfigError(
            f"database {database} was written by a newer version ({error}); install that version or restore a copy"
        ) from error


def head() -> str:
    """The revision of the shape that this version needs."""
    from alembic.script import ScriptDirectory

    return str(ScriptDirectory(str(SCRIPTS)).get_current_head())


def _upgrade(connection: Connection, to: str) -> None:
    from alembic import command
    from alembic.config import Config

    settings = Config()
    settings.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    settings.attributes["connection"] = connection
    command.upgrade(settings, to)
