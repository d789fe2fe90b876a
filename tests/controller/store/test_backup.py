"""A backup holds all that was stored, goes back into either database, and begins a new epoch there."""

import gzip
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from controller.config import Config
from controller.lock import only_controller
from controller.store.backup import backup, restore
from controller.store.dialects import Database
from corral.__main__ import cli
from tests.controller.house import NODE, Keys, batch, event, house, uuid
from tests.controller.postgres import Server
from tests.controller.process import toml, write_config
from vocab.errors import ConfigError, InputError

NOW = 1_800_000_000.0


def place(folder: Path, keys: Keys) -> Database:
    return Config(state_dir=str(folder), **keys).place


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest) -> Keys:
    """Another database, empty of everything."""
    if request.param == "sqlite":
        return {}
    server: Server = request.getfixturevalue("postgres")
    return server.settings(server.empty())


async def fill(folder: Path, keys: Keys) -> dict[str, Any]:
    """A history; the fleet and what else is to be found again."""
    async with house(folder, **keys) as home:
        await home.post("agent/batch", batch(event(1), event(2)))
        await home.post("holds", {"subject": {"gpu": uuid(0)}, "reason": "fan noise"})
        return await found(home)


async def found(home: Any) -> dict[str, Any]:
    desired = await home.get("agent/desired", node=NODE, wait_s=0)
    return {
        "fleet": {**await home.get("fleet"), "controller": ""},  # it may still be about to take the lease
        "events": await home.get("events"),
        "audit": await home.get("audit"),
        "holds": desired["holds"],
    }


async def test_backup_goes_back_into_either_database(tmp_path: Path, database: Keys, target: Keys) -> None:
    before = await fill(tmp_path / "from", database)
    rows = await backup(place(tmp_path / "from", database), tmp_path / "file")
    (tmp_path / "to").mkdir()
    assert await restore(place(tmp_path / "to", target), tmp_path / "file", NOW) == rows
    async with house(tmp_path / "to", **target) as home:
        assert await found(home) == before
        assert home.inside.mind.epoch == NOW
        assert (await home.post("agent/batch", batch(event(1), event(3))))["position"] == 2
        assert [each["text"] for each in await home.get("events")] == ["fault 1", "fault 2", "fault 3"]
        await home.post("pause", {"reason": "numbers go on"})
        assert [each["act"] for each in await home.get("audit")] == ["hold", "pause"]


async def test_restore_replaces_what_came_after_the_backup(tmp_path: Path, database: Keys) -> None:
    await fill(tmp_path, database)
    await backup(place(tmp_path, database), tmp_path / "file")
    async with house(tmp_path, **database) as home:
        await home.post("pause", {"reason": "after the backup"})
    await restore(place(tmp_path, database), tmp_path / "file", NOW)
    async with house(tmp_path, **database) as home:
        assert (await home.get("fleet"))["paused"] is False


async def test_restore_over_what_a_killed_controller_left_is_not_undone(tmp_path: Path) -> None:
    async with house(tmp_path / "living") as home:
        await home.post("agent/batch", batch(event(1)))
        await backup(home.inside.store.database, tmp_path / "file")
        await home.post("pause", {"reason": "in the log of writes alone"})
        shutil.copytree(tmp_path / "living", tmp_path / "killed")
    assert (tmp_path / "killed" / "controller.db-wal").stat().st_size > 0
    await restore(place(tmp_path / "killed", {}), tmp_path / "file", NOW)
    async with house(tmp_path / "killed") as home:
        assert (await home.get("fleet"))["paused"] is False


async def test_backup_is_taken_while_the_controller_runs(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        await home.post("agent/batch", batch(event(1)))
        assert await backup(home.inside.store.database, tmp_path / "file") > 0
        await home.post("agent/batch", batch(event(2), first=2))
    assert (tmp_path / "file").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("cut", [b"", b"\n".join([b'{"corral_backup":1,"revision":"0001"}', b'["a"]', b'{"rows":2}'])])
async def test_file_that_is_not_whole_changes_nothing(tmp_path: Path, database: Keys, cut: bytes) -> None:
    before = await fill(tmp_path, database)
    (tmp_path / "file").write_bytes(gzip.compress(cut))
    with pytest.raises(InputError, match="not a whole backup"):
        await restore(place(tmp_path, database), tmp_path / "file", NOW)
    async with house(tmp_path, **database) as home:
        assert await found(home) == before


async def test_restore_under_a_controller_that_decides_is_refused(tmp_path: Path, postgres: Server) -> None:
    keys = postgres.settings(postgres.fresh())
    async with house(tmp_path, **keys) as home:
        await backup(home.inside.store.database, tmp_path / "file")
        with pytest.raises(ConfigError, match="stop all controllers"):
            await restore(home.inside.store.database, tmp_path / "file", NOW)


def test_commands_back_up_and_restore(tmp_path: Path, database: Keys) -> None:
    import asyncio

    asyncio.run(fill(tmp_path / "state", database))
    config = str(write_config(tmp_path, 0, toml(database)))
    run = CliRunner().invoke
    made = run(cli, ["backup", str(tmp_path / "file"), "--config", config], catch_exceptions=False)
    assert made.exit_code == 0, made.output
    again = run(cli, ["backup", str(tmp_path / "file"), "--config", config], standalone_mode=False)
    assert "replace it with --force" in str(again.exception)
    back = run(cli, ["restore", str(tmp_path / "file"), "--config", config, "--yes"], catch_exceptions=False)
    assert "under a new epoch" in back.output


def test_restore_beside_a_running_controller_of_a_file_is_refused(tmp_path: Path) -> None:
    config = str(write_config(tmp_path, 0))
    (tmp_path / "file").write_bytes(gzip.compress(b""))
    with only_controller(tmp_path / "state"), pytest.raises(ConfigError, match="in use by another controller"):
        CliRunner().invoke(
            cli, ["restore", str(tmp_path / "file"), "--config", config, "--yes"], catch_exceptions=False
        )
