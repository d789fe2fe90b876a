"""A backup is put back as docs/operate.md says, and is what the controller then has."""

import shutil
import sqlite3
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "operate.md"
OURS = "controller.db"


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The folder of a controller that was killed: what it wrote last is in the write-ahead log alone."""
    living, dead = tmp_path / "living", tmp_path / "dead"
    living.mkdir()
    with sqlite3.connect(living / OURS) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE holds (id TEXT)")
        database.commit()
        with sqlite3.connect(tmp_path / "backup.db") as backup:
            database.backup(backup)
        backup.close()
        database.execute("INSERT INTO holds VALUES ('after the backup')")
        database.commit()
        shutil.copytree(living, dead)
    database.close()
    return dead


def test_what_a_killed_controller_leaves_goes_before_a_backup_is_put_back(killed: Path, tmp_path: Path) -> None:
    (command,) = [line for line in PAGE.read_text().splitlines() if "rm -f controller.db" in line]
    for name in command.partition("rm -f ")[2].split():
        (killed / name).unlink()
    assert list(killed.iterdir()) == []
    shutil.copy(tmp_path / "backup.db", killed / OURS)
    with sqlite3.connect(killed / OURS) as restored:
        assert restored.execute("SELECT * FROM holds").fetchall() == []
    restored.close()
