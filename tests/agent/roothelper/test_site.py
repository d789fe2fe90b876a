"""The site's own units, with a small program in the place of systemctl: what is named may be told, and nothing else."""

from pathlib import Path

import pytest

from agent.roothelper.config import read
from agent.roothelper.duty import Duty
from agent.roothelper.limits import LIMITS, Ledger
from agent.roothelper.programs import Programs
from agent.roothelper.requests import (
    Able,
    AnyReply,
    Ask,
    Denied,
    Done,
    Failed,
    ReadUnit,
    RestartUnit,
    StartUnit,
    StopUnit,
    UnitRun,
    request_of,
)
from agent.roothelper.site import SiteDuty, SystemdUnits
from tests.agent.roothelper.machine import SERVICES, FakeMachine
from vocab.clock import VirtualClock
from vocab.errors import ConfigError, InputError

ALLOWED = ("vllm@.service", "llama.service")
SHOWN = "echo LoadState=loaded; echo ActiveState=active; echo InvocationID=1f; echo UnitFileState=enabled"


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pause = folder / "PAUSE"
        self.systemctl("")

    def systemctl(self, body: str) -> None:
        path = self.folder / "systemctl"
        path.write_text(f'#!/bin/sh\necho "$*" >> "{self.folder}/asked"\n{body}\n')
        path.chmod(0o755)

    def ask(self, request: object) -> AnyReply:
        ledger, clock = Ledger(self.folder / "limits.json"), VirtualClock(1_000_000.0)
        site = SiteDuty(SystemdUnits(Programs(systemctl=self.folder / "systemctl")), ALLOWED, ledger, clock)
        return Duty(FakeMachine(), SERVICES, self.pause, ledger, clock, site=site).perform(request)

    def asked(self) -> list[str]:
        path = self.folder / "asked"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_it_says_which_units_it_may_stop(bench):
    reply = bench.ask(Ask())
    assert isinstance(reply, Able)
    assert reply.units == ALLOWED


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (StopUnit(unit="vllm@0.service"), "stop"),
        (RestartUnit(unit="vllm@gpu\\x2d0.service"), "restart"),
        (StartUnit(unit="llama.service"), "start"),
    ],
)
def test_a_unit_that_is_named_is_told_and_not_waited_for(bench, request_, words):
    assert bench.ask(request_) == Done()
    assert bench.asked() == [f"{words} --no-block --no-ask-password -- {request_.unit}"]


@pytest.mark.parametrize("unit", ["sshd.service", "vllm.service", "vllm@.service", "vllmx@0.service"])
def test_a_unit_that_nobody_named_is_left_alone(bench, unit):
    for request in (StopUnit(unit=unit), RestartUnit(unit=unit), StartUnit(unit=unit), ReadUnit(unit=unit)):
        assert isinstance(bench.ask(request), Denied)
    assert bench.asked() == []


@pytest.mark.parametrize(
    "unit", ["*.service", "vllm@*.service", "-H host.service", "a b.service", "x.socket", "a/b.service"]
)
def test_what_is_no_name_of_a_service_is_no_request(unit):
    line = f'{{"verb": "stop_unit", "unit": "{unit}"}}'.encode()
    with pytest.raises(InputError):
        request_of(line)


def test_how_a_unit_stands_is_told_in_systemds_words(bench):
    bench.systemctl(SHOWN)
    reply = bench.ask(ReadUnit(unit="vllm@0.service"))
    assert reply == UnitRun(active="active", invocation="1f", file_state="enabled")
    bench.systemctl("echo LoadState=not-found")
    assert isinstance(bench.ask(ReadUnit(unit="vllm@0.service")), Denied)


def test_what_systemd_refuses_is_told_in_its_words(bench):
    bench.systemctl("echo Unit vllm@0.service is masked. >&2; exit 1")
    assert bench.ask(StartUnit(unit="vllm@0.service")) == Failed(
        why="systemctl start vllm@0.service: Unit vllm@0.service is masked."
    )


def test_the_pause_file_forbids_a_stop_and_a_restart_and_no_start(bench):
    bench.pause.touch()
    assert isinstance(bench.ask(StopUnit(unit="vllm@0.service")), Denied)
    assert isinstance(bench.ask(RestartUnit(unit="vllm@0.service")), Denied)
    assert bench.ask(StartUnit(unit="vllm@0.service")) == Done()


def test_a_unit_is_restarted_only_so_often(bench):
    for _ in range(LIMITS["restart_unit"].most):
        assert bench.ask(RestartUnit(unit="vllm@0.service")) == Done()
    assert isinstance(bench.ask(RestartUnit(unit="vllm@0.service")), Denied)
    assert bench.ask(RestartUnit(unit="vllm@1.service")) == Done()


@pytest.mark.parametrize("unit", ["corral-agent.service", "vllm", "*.service"])
def test_a_configuration_with_an_odd_unit_is_refused(tmp_path, unit):
    path = tmp_path / "roothelper.toml"
    path.write_text(f'units = ["{unit}"]\n')
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="units"):
        read(path)
    path.write_text('units = ["vllm@.service", "llama.service"]\n')
    assert read(path).units == ALLOWED
