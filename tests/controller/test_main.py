"""The process: one clear line and exit code 2 when it cannot start, a clean end on SIGTERM."""

import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller.lock import only_controller
from tests.controller.process import ROOT, running, write_config
from tests.ports import free_ports
from vocab.errors import ConfigError


def wrong_start(config: Path) -> str:
    """The one line of a start that must fail with exit code 2."""
    with running(config) as process:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 2, said
        *_, line = said.splitlines()
        assert line.startswith("corral-controller: ")
        assert "Traceback" not in said
        return line


@contextmanager
def notified(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[socket.socket]:
    """Where the process reports its readiness, as under systemd."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
        door.bind(str(folder / "notify"))
        door.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", str(folder / "notify"))
        yield door


def test_ready_is_notified_and_sigterm_ends_cleanly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    with notified(monkeypatch, tmp_path) as door, running(write_config(tmp_path, port)) as process:
        assert door.recv(100) == b"READY=1"
        second = write_config(tmp_path / "second", port)
        assert "cannot be used" in wrong_start(second)  # the port is taken
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        assert "Traceback" not in said
        assert door.recv(100) == b"STOPPING=1"


def test_second_controller_on_the_same_state_is_refused(tmp_path: Path) -> None:
    config = write_config(tmp_path, 0)
    with only_controller(tmp_path / "state"):
        assert "in use by another controller" in wrong_start(config)


def test_a_full_disk_at_the_start_is_one_line(tmp_path: Path) -> None:
    config = write_config(tmp_path, 0)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        assert "controller.db cannot be used" in wrong_start(config)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_lock_is_free_once_its_holder_is_gone(tmp_path: Path) -> None:
    with only_controller(tmp_path), pytest.raises(ConfigError, match="in use by another"), only_controller(tmp_path):
        pass
    with only_controller(tmp_path):
        pass


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lissen = 1", "unknown field `lissen`"),
        ('[[deployments]]\nname = "chat"\nmodel = "m"\nreplicas = 1\nmin_ready = 2', "min_ready = 2 is more than"),
        ('token_file = "/nowhere/token"', "cannot read the token"),
    ],
)
def test_wrong_configuration_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    assert said in wrong_start(write_config(tmp_path, 0, text))


def test_address_that_others_can_reach_needs_token_and_tls(tmp_path: Path) -> None:
    config = write_config(tmp_path, 0)
    config.write_text(config.read_text().replace("127.0.0.1", "0.0.0.0"))
    assert "set token_file, tls_cert and tls_key" in wrong_start(config)


def test_database_that_is_none_is_refused(tmp_path: Path) -> None:
    config = write_config(tmp_path, 0)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "controller.db").write_bytes(b"this is not a database" * 100)
    assert "controller.db cannot be used" in wrong_start(config)


def test_no_torch_is_imported() -> None:
    check = "import controller.__main__, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], cwd=ROOT, check=True, timeout=60)
