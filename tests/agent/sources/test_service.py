"""Units as systemctl shows them: a stand-in program prints what a real one was seen to print."""

import asyncio
from pathlib import Path

import pytest

from agent.sources.service import FABRIC, ServiceSource, installed
from tests.agent.sources.collector import running
from tests.programs import need
from vocab.clock import SystemClock
from vocab.observations import ServiceSeen, SourceState

ACTIVE = """\
Id=nvidia-persistenced.service
LoadState=loaded
ActiveState=active
UnitFileState=enabled
NRestarts=2
InvocationID=d2e6f0a91f0e4c27a43f18b9a0a1f0aa
"""
ABSENT = (
    "Id=nvidia-imex.service\nLoadState=not-found\nActiveState=inactive\nUnitFileState=\nNRestarts=0\nInvocationID=\n"
)


def fabric(active: str, enabled: str) -> str:
    return f"Id={FABRIC}\nLoadState=loaded\nActiveState={active}\nUnitFileState={enabled}\nNRestarts=0\nInvocationID=\n"


@pytest.fixture
def systemctl(tmp_path: Path) -> Path:
    path = tmp_path / "systemctl"
    path.write_text(f"#!/bin/sh\ncat {tmp_path}/output\n")
    path.chmod(0o755)
    return path


def source(systemctl: Path, *, timeout_s: float = 60.0) -> ServiceSource:
    proc = systemctl.parent / "proc"
    return ServiceSource("n1", SystemClock(), systemctl=str(systemctl), proc=proc, period_s=0.05, timeout_s=timeout_s)


async def test_a_unit_is_told_with_its_restarts_and_a_mark_of_its_start(systemctl):
    (systemctl.parent / "output").write_text(f"{ACTIVE}\n{ABSENT}")
    async with running(source(systemctl)) as found:
        seen = await found.find(ServiceSeen)
        assert (seen.unit, seen.active, seen.restarts) == ("nvidia-persistenced.service", True, 2)
        assert seen.started_at == "d2e6f0a91f0e4c27a43f18b9a0a1f0aa"
        assert {one.unit for one in found.all(ServiceSeen)} == {"nvidia-persistenced.service"}


async def test_a_node_is_booting_until_its_start_is_over_and_never_for_long(systemctl):
    (systemctl.parent / "output").write_text("")
    says = systemctl.parent / "state"
    systemctl.write_text(f'#!/bin/sh\ncase "$*" in *SystemState*) cat {says};; esac\n')
    (systemctl.parent / "proc").mkdir()
    looking = source(systemctl)
    says.write_text("SystemState=starting\n")
    begin(systemctl, ago_s=60.0)
    async with running(looking):
        await until(lambda: looking.booting)
        says.write_text("SystemState=degraded\n")
        await until(lambda: not looking.booting)
        says.write_text("SystemState=starting\n")
        await until(lambda: looking.booting)
        begin(systemctl, ago_s=1_000.0)
        await until(lambda: not looking.booting)


def begin(systemctl: Path, ago_s: float) -> None:
    """The node's boot was so long ago."""
    beside = systemctl.parent / "proc" / "stat.new"
    beside.write_text(f"cpu 1 2 3\nbtime {int(SystemClock().now() - ago_s)}\n")
    beside.replace(systemctl.parent / "proc" / "stat")


async def until(holds):
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.01)


async def test_an_enabled_fabric_manager_that_is_not_active_is_a_source_that_is_down(systemctl):
    (systemctl.parent / "output").write_text(fabric("failed", "enabled"))
    async with running(source(systemctl)) as found:
        down = await found.find(SourceState, lambda one: one.source == "fabric_manager")
        assert (down.state, (down.error or "").partition(":")[0]) == ("down", "INACTIVE")
        (systemctl.parent / "output").write_text(fabric("active", "enabled"))
        await found.find(SourceState, lambda one: one.source == "fabric_manager" and one.state == "up")


async def test_a_fabric_manager_that_nobody_enabled_is_missed_only_where_there_are_switches(systemctl):
    (systemctl.parent / "output").write_text(fabric("inactive", "disabled"))
    async with running(source(systemctl)) as found:
        await found.find(ServiceSeen)
        assert not [one for one in found.all(SourceState) if one.source == "fabric_manager"]
        (systemctl.parent / "proc/driver/nvidia-nvswitch").mkdir(parents=True)
        await found.find(SourceState, lambda one: one.source == "fabric_manager" and one.state == "down")


async def test_a_systemctl_that_hangs_is_killed_and_says_nothing_of_any_service(systemctl):
    systemctl.write_text(f"#!/bin/sh\necho $$ > {systemctl.parent}/pid\nexec sleep 600\n")
    async with running(source(systemctl, timeout_s=0.5)) as found:
        degraded = await found.find(SourceState)
        assert (degraded.source, degraded.state) == ("service", "degraded")
        assert (degraded.error or "").startswith("TIMEOUT: ")
        assert not found.all(ServiceSeen)


@pytest.mark.parametrize(
    ("script", "error"), [("echo no bus >&2; exit 1", "FAILED: systemctl: no bus"), (None, "NOT_FOUND")]
)
async def test_a_machine_without_systemd_says_so(systemctl, script, error):
    if script is None:
        systemctl.unlink()
    else:
        systemctl.write_text(f"#!/bin/sh\n{script}\n")
    async with running(source(systemctl)) as found:
        degraded = await found.find(SourceState)
        assert (degraded.error or "").startswith(error)


def test_masked_and_unknown_units_are_left_out():
    output = f"{ACTIVE.replace('loaded', 'masked')}\n{ABSENT}\n\nnonsense\n"
    assert list(installed(output)) == []


async def test_the_real_systemctl_answers_or_says_why_not():
    systemctl = need("systemctl", "apt-get install systemd")
    async with running(ServiceSource("n1", SystemClock(), systemctl=systemctl)) as found:
        state = await found.find(SourceState)
        assert state.source in {"service", "fabric_manager"}
        assert state.state == "up" or state.error
