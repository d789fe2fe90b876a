"""Whom the agent listens to without being told to."""

import os
from pathlib import Path

import pytest

from agent.sources.dcgm.sight import is_trusted

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
PORT = 5555


def table(folder: Path, *sockets: tuple[int, str, int]) -> tuple[Path]:
    """As /proc/net/tcp shows them: port, state, user."""
    path = folder / "tcp"
    rows = (
        f"   0: 0100007F:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  {user}        0 1 1\n"
        for port, state, user in sockets
    )
    path.write_text(HEAD + "".join(rows))
    return (path,)


@pytest.mark.parametrize("user", [0, os.getuid()])
def test_root_and_our_own_user_are_trusted(tmp_path: Path, user: int) -> None:
    assert is_trusted(PORT, table(tmp_path, (PORT, "0A", user), (22, "0A", 4242)))


def test_another_user_is_not(tmp_path: Path) -> None:
    assert not is_trusted(PORT, table(tmp_path, (PORT, "0A", 0), (PORT, "0A", 4242)))


def test_a_connection_is_no_listener(tmp_path: Path) -> None:
    assert not is_trusted(PORT, table(tmp_path, (PORT, "01", 0)))
    assert not is_trusted(PORT, (tmp_path / "absent",))
