"""Bring a database file to the shape that this version needs, before anything else opens it."""

import logging
import sqlite3
from pathlib import Path

from sqlalchemy import create_engine, event
from sqlalchemy.exc import DatabaseError, SQLAlchemyError

from vocab.errors import ConfigError

SCRIPTS = Path(__file__).parent.parent / "migrations"


def upgrade(database: Path) -> None:
    """Take every step that is missing. Raises ConfigError if the file cannot be used, saying why."""
    logging.getLogger("alembic").setLevel(logging.WARNING)  # before the import, which logs too
    from alembic import command
    from alembic.config import Config
    from alembic.util.exc import CommandError

    engine = create_engine(f"sqlite:///{database}")
    event.listen(engine, "connect", _own_transactions)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    settings = Config()
    settings.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    try:
        with engine.connect() as connection:
            settings.attributes["connection"] = connection
            command.upgrade(settings, "head")
    except CommandError as error:
        raise ConfigError(
            f"state_dir: {database} was written by a newer version ({error}); install that version or restore a copy"
        ) from error
    except DatabaseError as error:
        raise ConfigError(f"state_dir: {database} cannot be used: {error.orig}") from error
    except SQLAlchemyError as error:
        raise ConfigError(f"state_dir: {database} cannot be used: {error}") from error
    finally:
        engine.dispose()


def _own_transactions(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # the module would commit around DDL; "begin" above says when instead
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA busy_timeout=5000")
