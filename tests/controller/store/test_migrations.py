"""The migrations make exactly the tables that the code uses, on both databases, and ship with it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config as Settings
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncEngine

from controller.store.dialects import Database, Sqlite
from controller.store.migrate import SCRIPTS, upgrade
from controller.store.tables import metadata
from tests.controller.postgres import Server
from vocab.errors import ConfigError


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """A database without tables."""
    if request.param == "sqlite":
        return Sqlite(tmp_path / "controller.db")
    server: Server = request.getfixturevalue("postgres")
    return server.database(server.empty())


@pytest.fixture
async def engine(empty: Database) -> AsyncIterator[AsyncEngine]:
    made = empty.engine()
    yield made
    await made.dispose()


async def ask(engine: AsyncEngine, statement: str) -> list[Any]:
    async with engine.begin() as connection:
        found = await connection.execute(text(statement))
        return [tuple(row) for row in found] if found.returns_rows else []


async def test_migrated_database_equals_the_tables(empty: Database, engine: AsyncEngine) -> None:
    def differences(connection: Connection) -> list[Any]:
        return compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata)

    await upgrade(engine, empty)
    async with engine.begin() as connection:
        assert await connection.run_sync(differences) == []


async def test_upgrade_twice_changes_nothing(empty: Database, engine: AsyncEngine) -> None:
    await upgrade(engine, empty)
    await upgrade(engine, empty)
    assert await ask(engine, "select value from counters where name = 'epoch'") == [(1,)]


async def test_database_of_a_newer_version_is_refused_by_name(empty: Database, engine: AsyncEngine) -> None:
    await upgrade(engine, empty)
    await ask(engine, "update alembic_version set version_num = '9999'")
    with pytest.raises(ConfigError, match="written by a newer version"):
        await upgrade(engine, empty)


async def test_step_that_dies_leaves_nothing(
    empty: Database, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from alembic import op

    create = op.create_table
    made: list[str] = []

    def dying(name: str, *columns: object) -> object:
        if len(made) == 3:
            raise ConfigError("the power went")
        made.append(name)
        return create(name, *columns)  # type: ignore[arg-type]

    monkeypatch.setattr(op, "create_table", dying)
    with pytest.raises(ConfigError, match="the power went"):
        await upgrade(engine, empty)
    monkeypatch.undo()
    async with engine.begin() as connection:
        assert await connection.run_sync(lambda inside: inspect(inside).get_table_names()) == []
    await upgrade(engine, empty)


async def test_steps_can_be_taken_back_one_by_one(empty: Database, engine: AsyncEngine) -> None:
    from alembic import command

    def down(connection: Connection) -> None:
        settings = Settings()
        settings.set_main_option("script_location", str(SCRIPTS))
        settings.attributes["connection"] = connection
        command.downgrade(settings, "base")

    await upgrade(engine, empty)
    async with engine.begin() as connection:
        await connection.run_sync(down)
    await upgrade(engine, empty)
    assert await ask(engine, "select value from counters where name = 'seq'") == [(0,)]


def test_every_step_lies_in_the_package_and_they_are_one_line() -> None:
    settings = Settings()
    settings.set_main_option("script_location", str(SCRIPTS))
    steps = list(ScriptDirectory.from_config(settings).walk_revisions())
    assert len(steps) == len(list((SCRIPTS / "versions").glob("v*.py")))
    assert all(step.is_head is (place == 0) for place, step in enumerate(steps))
