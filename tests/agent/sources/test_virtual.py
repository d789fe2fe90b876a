"""The virtual node's source: beats become load, load becomes readings."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from agent.sources.virtual import VirtualSource
from agent.virtual.faults import Fault, apply
from agent.virtual.lifecycle import reboot
from agent.virtual.state import VirtualState
from tests.agent.sources.collector import running
from vocab.beat import Beat, pack
from vocab.clock import SystemClock, VirtualClock
from vocab.observations import DriverCall, GpuSample, Member, NodeSeen, SourceState


class Replica(msgspec.Struct):
    replica: str
    members: tuple[Member, ...]
    pid: int | None


class Bench:
    """A virtual node under a virtual clock, with replicas whose beats the test writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = VirtualClock(1_000_000.0)
        self.state = VirtualState.create(folder / "virtual.state", "node-a", clock=self.clock)
        self.replicas: list[Replica] = []
        self.source = VirtualSource("node-a", self.state.path, self.clock, lambda: self.replicas)
        self.step = 0

    def serve(self, *gpus: int, pid: int | None = None) -> Replica:
        members = tuple(Member(node="node-a", gpu=self.uuid(gpu), rank=rank) for rank, gpu in enumerate(gpus))
        replica = Replica(f"chat-{len(self.replicas)}", members, pid or os.getpid())
        self.replicas.append(replica)
        return replica

    def beat(self, replica: Replica, *, steps: int = 20, ready: bool = True) -> None:
        self.step += steps
        folder = self.folder / "replicas" / replica.replica
        folder.mkdir(parents=True, exist_ok=True)
        beat = Beat(pid=replica.pid or 0, ready=ready, step=self.step, tokens=self.step * 4, running=4)
        (folder / "beat").write_bytes(pack(beat, 2))

    def uuid(self, index: int) -> str:
        return str(self.state.gpus[index].uuid.decode())

    def second(self, *stepping: Replica) -> dict[int, GpuSample]:
        self.clock.advance(1.0)
        for replica in stepping:
            self.beat(replica)
        return {one.index or 0: one for one in self.source.observe() if isinstance(one, GpuSample)}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def ended_pid() -> Iterator[int]:
    """A process that has ended and was not reaped: still in the process table, no longer on a GPU."""
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        yield process.pid


def test_the_first_pass_tells_state_and_inventory_before_samples(bench: Bench) -> None:
    first, second, *samples = bench.source.observe()
    assert first == SourceState(at=1_000_000.0, node="node-a", source="nvml", state="up")
    assert isinstance(second, NodeSeen)
    assert (second.virtual, second.driver, len(second.gpus), second.expected_gpus) == (True, "565.57.01", 8, 8)
    assert second.boot_at == 1_000_000.0 - 86400.0
    assert [one.index for one in samples if isinstance(one, GpuSample)] == list(range(8))


def test_every_observation_carries_the_clock_and_the_node(bench: Bench) -> None:
    bench.source.observe()
    bench.clock.advance(5.0)
    found = bench.source.observe()
    assert {(one.at, one.node) for one in found} == {(1_000_005.0, "node-a")}


def test_a_stepping_replica_works_its_gpu_and_no_other(bench: Bench) -> None:
    replica = bench.serve(0)
    for _ in range(30):
        samples = bench.second(replica)
    busy, idle = samples[0].readings, samples[1].readings
    assert busy is not None
    assert idle is not None
    assert (busy.utilization_ratio, idle.utilization_ratio) == (0.98, 0.0)
    assert 0.2 < (busy.sm_active_ratio or 0) < 0.5
    assert (busy.power_w or 0) > (idle.power_w or 0) + 200
    assert (busy.temperature_c or 0) > (idle.temperature_c or 0) + 8
    assert (busy.memory_used_bytes or 0) > 70 * 2**30
    assert [process.pid for process in samples[0].processes or ()] == [os.getpid()]
    assert samples[1].processes == ()


def test_a_replica_that_stops_stepping_leaves_its_gpu_idle_but_full(bench: Bench) -> None:
    replica = bench.serve(0)
    bench.second(replica)
    bench.second(replica)
    stalled = bench.second()[0].readings
    assert stalled is not None
    assert (stalled.utilization_ratio, stalled.clock_reasons) == (0.0, 1)
    assert (stalled.memory_used_bytes or 0) > 70 * 2**30


def test_a_replica_over_two_gpus_works_both_and_their_links(bench: Bench) -> None:
    replica = bench.serve(2, 3)
    bench.second(replica)
    samples = bench.second(replica)
    assert [samples[index].readings.utilization_ratio for index in (2, 3)] == [0.98, 0.98]  # type: ignore[union-attr]
    assert (samples[2].readings.nvlink_tx_bytes or 0) > 0  # type: ignore[union-attr]


def test_a_process_that_ended_frees_its_gpu(bench: Bench, ended_pid: int) -> None:
    replica = bench.serve(0, pid=ended_pid)
    bench.second(replica)
    samples = bench.second(replica)
    assert samples[0].processes == ()
    assert samples[0].readings is not None
    assert samples[0].readings.memory_used_bytes == 0


def test_a_torn_beat_is_no_restart(bench: Bench) -> None:
    replica = bench.serve(0)
    bench.second(replica)
    path = bench.folder / "replicas" / replica.replica / "beat"
    path.write_bytes(path.read_bytes()[:20])
    bench.second()
    assert bench.second(replica)[0].readings.utilization_ratio == 0.98  # type: ignore[union-attr]


def test_xid_79_turns_the_next_sample_into_gpu_is_lost(bench: Bench) -> None:
    bench.second()
    apply(bench.state, Fault(kind="xid", code=79, gpu=3))
    samples = bench.second()
    assert samples[3].error == "GPU_IS_LOST"
    assert samples[3].readings is None
    assert [index for index, one in samples.items() if one.error] == [3]


def test_a_fault_shows_in_the_very_next_sample_links_included(bench: Bench) -> None:
    bench.second()
    apply(bench.state, Fault(kind="remap", gpu=1))
    apply(bench.state, Fault(kind="xid", code=74, gpu=1, link=13))
    sample = bench.second()[1]
    assert sample.readings is not None
    assert sample.readings.remap_pending == 1
    assert (sample.links["13"].state, sample.links["12"].state) == (0, 1)


def test_the_inventory_is_told_again_when_it_changes_and_each_minute(bench: Bench) -> None:
    bench.source.observe()
    times = []
    for second in range(1, 121):
        bench.clock.advance(1.0)
        if second == 30:
            bench.state.gpus[5].removed = 1
        times += [(second, len(one.gpus)) for one in bench.source.observe() if isinstance(one, NodeSeen)]
    assert times == [(30, 7), (90, 7)]


def test_a_reboot_is_a_new_boot_id(bench: Bench) -> None:
    (first,) = [one for one in bench.source.observe() if isinstance(one, NodeSeen)]
    reboot(bench.state)
    (second,) = [one for one in bench.source.observe() if isinstance(one, NodeSeen)]
    assert first.boot_id != second.boot_id == bench.state.boot_id


def test_a_hung_gpu_gives_a_call_that_started_and_no_samples_until_it_returns(bench: Bench) -> None:
    bench.source.observe()
    apply(bench.state, Fault(kind="hang", gpu=4))
    found = bench.source.observe()
    assert [(one.gpu, one.state) for one in found if isinstance(one, DriverCall)] == [(bench.uuid(4), "started")]
    assert sorted(bench.second()) == [0, 1, 2, 3, 5, 6, 7]
    apply(bench.state, Fault(kind="clear", gpu=4))
    found = bench.source.observe()
    assert [(one.gpu, one.state) for one in found if isinstance(one, DriverCall)] == [(bench.uuid(4), "returned")]


def test_a_driver_that_is_not_loaded_is_a_source_down_and_no_fault(bench: Bench) -> None:
    bench.source.observe()
    bench.state.block.init_error = 9
    state, node = bench.source.observe()
    assert isinstance(state, SourceState)
    assert isinstance(node, NodeSeen)
    assert state.state == "down"
    assert (state.error or "").startswith("DRIVER_NOT_LOADED: ")
    assert (node.driver, len(node.gpus)) == (None, 8)
    bench.state.block.init_error = 0
    assert any(isinstance(one, SourceState) and one.state == "up" for one in bench.source.observe())


async def test_it_runs_until_cancelled(tmp_path: Path) -> None:
    VirtualState.create(tmp_path / "virtual.state", "node-a", "2xH100")
    async with running(VirtualSource("node-a", tmp_path / "virtual.state", SystemClock())) as found:
        await found.find(GpuSample, lambda sample: sample.index == 1)


def test_a_program_that_corral_did_not_start_stands_in_the_process_list(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    folder = tmp_path / "clients"
    folder.mkdir()
    (folder / str(os.getpid())).write_text('{"gpu": 2, "used_bytes": 20000000000, "utilization": 0.5}')
    (folder / "999999999").write_text('{"gpu": 3, "used_bytes": 20000000000}')  # no such process
    seen = bench.second()
    assert [(one.pid, one.used_bytes) for one in seen[2].processes or ()] == [(os.getpid(), 20_000_000_000)]
    assert not seen[3].processes
    assert seen[2].readings is not None
    assert seen[2].readings.utilization_ratio == 0.5
