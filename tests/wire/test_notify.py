import logging
import socket
from pathlib import Path

import msgspec
import pytest

from wire.logs import Json, KeyValue
from wire.notify import notify, watchdog_s


def test_the_service_manager_hears_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        notify("READY=1")
        assert manager.recv(100) == b"READY=1"


def test_without_a_service_manager_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    notify("READY=1")
    assert watchdog_s() is None


def test_the_watchdog_is_fed_twice_as_often_as_it_bites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "10000000")
    assert watchdog_s() == 5.0


def test_logs_carry_their_ids_in_both_forms() -> None:
    record = logging.makeLogRecord({"name": "agent", "levelname": "INFO", "msg": "fenced", "gpu": "GPU-1"})
    assert KeyValue().format(record).endswith("agent: fenced gpu=GPU-1")
    assert msgspec.json.decode(Json().format(record))["gpu"] == "GPU-1"
