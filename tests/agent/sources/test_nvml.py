"""The NVML source on the C library, under the real nvidia-ml-py, in its real child process."""

import os
import signal
from pathlib import Path

import msgspec
import pytest

from agent.sources.nvml import NvmlSource
from agent.virtual.faults import Fault, apply
from agent.virtual.motion import Held, advance
from agent.virtual.physics import Load
from agent.virtual.state import VirtualState, uuid_of
from agent.virtual.view import identity_of, links_of, processes_of, readings_of
from tests.agent.sources.collector import running
from tests.agent.sources.rig import child_pid, exists, listening, make, picture, state_is, whole
from vocab.observations import DriverCall, DriverEvent, GpuSample, NodeSeen, SourceState


async def test_both_faces_of_a_virtual_node_show_the_same(source: NvmlSource, state: VirtualState) -> None:
    for index, gpu in enumerate(state.gpus):
        load = Load(
            utilization=0.98,
            sm_active=0.1 * index,
            sm_occupancy=0.04 * index,
            tensor=0.02 * index,
            dram=0.11 * index,
            contexts=1,
            host_kib_per_s=1000 * index,
            links_kib_per_s=5000,
        )
        advance(gpu, state.board, load, [Held(4000 + index, 1 << 30)], 7.3)
        gpu.pcie_replays, gpu.ecc_sram_uncorrected_lifetime = index, index
    apply(state, Fault(kind="remap", gpu=1))
    apply(state, Fault(kind="ecc", gpu=2, count=9, correctable=True))
    apply(state, Fault(kind="link", gpu=3, link=17))
    async with running(source) as found:
        for index, gpu in enumerate(state.gpus):
            sample = await picture(found, index)
            assert sample.readings == readings_of(gpu)
            assert sample.links == links_of(gpu)
            assert sample.processes == processes_of(gpu)
            assert sample.errors == {}
        (seen,) = found.all(NodeSeen)
        plain = [msgspec.structs.replace(gpu, vbios=None, inforom=None, gsp=None) for gpu in seen.gpus]
        assert plain == [identity_of(gpu, index) for index, gpu in enumerate(state.gpus)]
        assert (seen.gpus[0].vbios, seen.gpus[0].inforom) == ("96.00.99.00.01", "G520.0200.00.05")
        assert (seen.gpus[0].gsp, seen.cuda) == ("565.57.01", "12.7")
        assert (seen.driver, seen.expected_gpus) == ("565.57.01", 8)


async def test_what_the_board_never_supports_is_learnt_once_and_told(source: NvmlSource, state: VirtualState) -> None:
    async with running(source) as found:
        up = await found.find(SourceState, lambda one: bool(one.unsupported))
        assert up.state == "up"
        assert up.unsupported == ("fan_ratio", "retired_pages_dbe", "retired_pages_sbe", "retirement_pending")


async def test_an_xid_arrives_as_a_driver_event_and_the_lost_gpu_as_an_error(
    source: NvmlSource, state: VirtualState
) -> None:
    async with running(source) as found:
        await found.find(GpuSample, lambda one: one.index == 3 and whole(one))
        await listening(found, state)
        after = len(found.seen)
        apply(state, Fault(kind="xid", code=79, gpu=3))
        event = await found.find(DriverEvent, lambda one: one.data == 79, after=after)
        assert (event.type, event.data, event.gpu, event.node) == ("xid", 79, uuid_of("node-a", 3), "node-a")
        lost = await found.find(GpuSample, lambda one: one.error is not None)
        assert (lost.index, lost.error, lost.readings) == (3, "GPU_IS_LOST", None)
        after = len(found.seen)
        for index in (0, 7):
            await found.find(GpuSample, lambda one, index=index: one.index == index, after=after)  # type: ignore[misc]
        assert len(found.all(NodeSeen)) == 1  # lost is not removed


async def test_a_gpu_that_comes_back_is_read_anew(source: NvmlSource, state: VirtualState) -> None:
    async with running(source) as found:
        await found.find(GpuSample)
        state.gpus[0].lost = 15
        await found.find(GpuSample, lambda one: one.error == "GPU_IS_LOST")
        after = len(found.seen)
        state.gpus[0].lost = 0
        sample = await picture(found, 0, after=after)
        assert sample.readings == readings_of(state.gpus[0])


@pytest.mark.parametrize(("code", "name"), [(16, "RESET_REQUIRED"), (999, "UNKNOWN"), (28, "GPU_NOT_FOUND")])
async def test_the_other_faces_of_a_lost_gpu_are_errors_of_the_whole_read(
    source: NvmlSource, state: VirtualState, code: int, name: str
) -> None:
    async with running(source) as found:
        await found.find(GpuSample, whole)
        state.gpus[0].lost = code
        assert (await found.find(GpuSample, lambda one: one.error is not None)).error == name


async def test_a_gpu_that_was_lost_before_the_start_is_told_by_its_index(
    source: NvmlSource, state: VirtualState
) -> None:
    state.gpus[2].lost = 15
    async with running(source) as found:
        sample = await found.find(GpuSample, lambda one: one.error is not None)
        assert (sample.gpu, sample.index, sample.error) == (None, 2, "GPU_IS_LOST")
        seen = await found.find(NodeSeen)
        assert (len(seen.gpus), seen.expected_gpus) == (7, 8)


async def test_a_removed_gpu_is_left_out_of_the_inventory(source: NvmlSource, state: VirtualState) -> None:
    async with running(source) as found:
        await found.find(GpuSample, lambda one: one.index == 7)
        state.gpus[5].removed = 1
        seen = await found.find(NodeSeen, lambda one: len(one.gpus) == 7)
        assert uuid_of("node-a", 5) not in {gpu.uuid for gpu in seen.gpus}
        assert seen.expected_gpus == 7


async def test_a_hung_gpu_is_named_and_the_others_go_on(source: NvmlSource, state: VirtualState) -> None:
    async with running(source) as found:
        await found.find(GpuSample, lambda one: one.index == 4 and whole(one))
        state.gpus[4].hang = 1
        call = await found.find(DriverCall)
        assert (call.gpu, call.state) == (uuid_of("node-a", 4), "started")
        assert call.call.startswith("nvmlDeviceGet")
        kept = await found.find(DriverCall, lambda one: one.stacks is not None)
        assert (kept.gpu, kept.call, kept.pid) == (call.gpu, call.call, call.pid)
        assert f"{call.pid} " in kept.stacks, "the kernel's view of its threads"
        assert "nvml_call.py" in kept.stacks, "and its own: the call into the library"
        degraded = await found.find(SourceState, state_is("degraded"))
        assert uuid_of("node-a", 4) in (degraded.error or "")
        after = len(found.seen)
        await found.find(GpuSample, lambda one: one.index == 5, after=after)
        state.gpus[4].hang = 0
        assert (await found.find(DriverCall, state_is("returned"))).gpu == uuid_of("node-a", 4)
        await found.find(GpuSample, lambda one: one.index == 4, after=after)
        await found.find(SourceState, state_is("up"), after=after)


async def test_a_hang_of_the_whole_driver_gets_a_second_child_and_no_third(
    nvml_library: Path, state: VirtualState, tmp_path: Path
) -> None:
    async with running(make(nvml_library, state, tmp_path, give_up_s=0.2)) as found:
        await found.find(GpuSample, whole)
        state.block.hang = 1
        down = await found.find(SourceState, state_is("down"))
        assert (down.error or "").startswith("HUNG: ")
        second = await found.find(DriverCall, lambda one: one.call == "nvmlInit")
        first = next(one.pid for one in found.all(DriverCall) if one.gpu)
        assert second.pid != first
        await found.find(DriverCall, lambda one: one.call == "nvmlDeviceGetCount")  # the first child's own look
        assert {one.pid for one in found.all(DriverCall)} == {first, second.pid}
        after = len(found.seen)
        state.block.hang = 0
        await found.find(SourceState, state_is("up"), after=after)
        await found.find(GpuSample, whole, after=after)
        await found.find(DriverCall, lambda one: one.state == "returned" and one.pid == first, after=after)


@pytest.mark.parametrize(
    ("code", "name", "step"),
    [
        (9, "DRIVER_NOT_LOADED", "modprobe"),
        (4, "NO_PERMISSION", "/dev/nvidia"),
        (18, "LIB_RM_VERSION_MISMATCH", "reboot"),
    ],
)
async def test_nvml_that_cannot_be_opened_is_a_source_down_with_the_next_step(
    source: NvmlSource, state: VirtualState, code: int, name: str, step: str
) -> None:
    state.block.init_error = code
    async with running(source) as found:
        down = await found.find(SourceState)
        assert (down.source, down.state) == ("nvml", "down")
        assert (down.error or "").startswith(f"{name}: ")
        assert step in (down.error or "")
        seen = await found.find(NodeSeen)
        assert (seen.driver, seen.gpus) == (None, ())
        assert found.all(GpuSample) == []
        state.block.init_error = 0
        await found.find(SourceState, state_is("up"))
        await found.find(GpuSample, whole)


async def test_a_missing_library_is_a_source_down(state: VirtualState, tmp_path: Path) -> None:
    async with running(make(tmp_path / "libnvidia-ml.so.1", state, tmp_path)) as found:
        down = await found.find(SourceState)
        assert (down.error or "").startswith("LIBRARY_NOT_FOUND: ")
        assert "nvml_library" in (down.error or "")


async def test_a_child_that_is_killed_is_started_again_and_the_inventory_is_kept(
    source: NvmlSource, state: VirtualState
) -> None:
    async with running(source) as found:
        await found.find(GpuSample)
        os.kill(child_pid(), signal.SIGKILL)
        down = await found.find(SourceState, state_is("down"))
        assert (down.error or "").startswith("CHILD_DIED: ")
        after = len(found.seen)
        await found.find(SourceState, state_is("up"), after=after)
        await found.find(GpuSample, whole, after=after)
        assert {len(one.gpus) for one in found.all(NodeSeen)} == {8}


async def test_the_child_ends_with_its_source(source: NvmlSource, state: VirtualState) -> None:
    async with running(source) as found:
        await found.find(GpuSample)
        pid = child_pid()
    assert not exists(pid)
