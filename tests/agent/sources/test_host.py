"""The host source with its real child process, on a tree of files."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent.replicas.identity import arguments, pids
from agent.sources.host import HostSource
from tests.agent.sources.collector import running
from tests.agent.sources.host_tree import infiniband, machine, process
from vocab.clock import SystemClock
from vocab.observations import HostSample, ProcessSeen, SourceState


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    machine(tmp_path / "proc")
    infiniband(tmp_path / "sys", "mlx5_0", link_downed=2)
    return tmp_path


def source(tree: Path, *, silent_s: float = 30.0) -> HostSource:
    return HostSource(
        "n1", tree, SystemClock(), proc=tree / "proc", sys_=tree / "sys",
        period_s=0.05, silent_s=silent_s, look_s=0.05, retry_s=0.01,
    )  # fmt: skip


async def test_a_host_is_read_in_a_process_of_its_own(tree: Path) -> None:
    process(tree / "proc", 7, "nvidia-smi", "D")
    async with running(source(tree)) as found:
        up = await found.find(SourceState)
        assert (up.source, up.state) == ("host", "up")
        ports = await found.find(HostSample, lambda one: bool(one.devices))
        assert ports.devices["mlx5_0"]["link_downed"] == 2
        await found.find(HostSample, lambda one: one.readings.get("memory_available_bytes") == 1024 * 1024)
        await found.find(HostSample, lambda one: one.readings.get("nvidia_d_state") == 1)
        hung = await found.find(ProcessSeen)
        assert (hung.node, hung.pid, hung.name, hung.state) == ("n1", 7, "nvidia-smi", "D")


async def test_a_card_that_hangs_degrades_the_source_and_stops_no_other_read(tree: Path) -> None:
    infiniband(tree / "sys", "mlx5_1")
    counter = tree / "sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error"
    counter.unlink()
    os.mkfifo(counter)
    held = os.open(counter, os.O_RDWR)  # whoever reads it waits for a word
    async with running(source(tree, silent_s=0.5)) as found:
        await found.find(SourceState, lambda one: (one.error or "").startswith("HUNG: port mlx5_0 of"))
        before = len(found.seen)
        await found.find(HostSample, lambda one: "uptime_s" in one.readings, after=before)
        await found.find(HostSample, lambda one: "mlx5_1" in one.devices, after=before)
        infiniband(tree / "new", "mlx5_0", symbol_error=5)
        (tree / "new/class/infiniband/mlx5_0/ports/1/counters/symbol_error").rename(counter)
        os.close(held)
        await found.find(SourceState, lambda one: one.state == "up", after=before)
        await found.find(HostSample, lambda one: one.devices.get("mlx5_0", {}).get("symbol_error") == 5)


async def test_a_card_that_comes_later_is_read_and_one_that_goes_is_not_missed(tree: Path) -> None:
    async with running(source(tree, silent_s=1.0)) as found:
        await found.find(HostSample, lambda one: "mlx5_0" in one.devices)
        infiniband(tree / "sys", "mlx5_7")
        await found.find(HostSample, lambda one: "mlx5_7" in one.devices)
        (tree / "sys/class/infiniband/mlx5_7").rename(tree / "gone")
        before = len(found.seen)
        clock = SystemClock()
        until = clock.monotonic() + 1.5
        await found.find(HostSample, lambda _: clock.monotonic() > until, after=before)
        assert not [one.error for one in found.all(SourceState) if "mlx5_7" in (one.error or "")]


async def test_a_child_that_ends_is_reported_and_started_again(tree: Path) -> None:
    async with running(source(tree)) as found:
        await found.find(HostSample)
        (child,) = [pid for pid in pids() if any(f'"{tree}"' in word for word in arguments(pid))]
        os.kill(child, signal.SIGKILL)
        down = await found.find(SourceState, lambda one: one.state == "down")
        assert (down.error or "").startswith("CHILD_DIED: ")
        await found.find(SourceState, lambda one: one.state == "up", after=found.seen.index(down))


async def test_the_child_ends_with_the_agent(tree: Path) -> None:
    async with running(source(tree)) as found:
        await found.find(HostSample)
    assert not [pid for pid in pids() if any(f'"{tree}"' in word for word in arguments(pid))]


def test_the_process_that_reads_the_host_loads_the_standard_library_alone() -> None:
    script = "import sys, agent.sources.host_child; print(*(name for name in sys.modules if 'msgspec' in name))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "\n"
