"""The migrations make exactly the tables that the code uses, and ship with it."""

import sqlite3
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from controller.store.migrate import SCRIPTS, upgrade
from controller.store.tables import metadata
from vocab.errors import ConfigError


def test_migrated_database_equals_the_tables(tmp_path: Path) -> None:
    upgrade(tmp_path / "controller.db")
    engine = create_engine(f"sqlite:///{tmp_path / 'controller.db'}")
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


def test_upgrade_twice_changes_nothing(tmp_path: Path) -> None:
    upgrade(tmp_path / "controller.db")
    upgrade(tmp_path / "controller.db")
    with sqlite3.connect(tmp_path / "controller.db") as connection:
        assert connection.execute("select value from counters where name = 'epoch'").fetchall() == [(1,)]
    connection.close()


def test_database_of_a_newer_version_is_refused_by_name(tmp_path: Path) -> None:
    upgrade(tmp_path / "controller.db")
    with sqlite3.connect(tmp_path / "controller.db") as connection:
        connection.execute("update alembic_version set version_num = '9999'")
    connection.close()
    with pytest.raises(ConfigError, match="written by a newer version"):
        upgrade(tmp_path / "controller.db")


def test_step_that_dies_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        upgrade(tmp_path / "controller.db")
    monkeypatch.undo()
    upgrade(tmp_path / "controller.db")


def test_every_step_lies_in_the_package() -> None:
    assert (SCRIPTS / "env.py").is_file()
    assert [path.name for path in sorted((SCRIPTS / "versions").glob("v*.py"))] == ["v0001_first.py"]
