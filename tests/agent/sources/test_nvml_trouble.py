"""The driver can hang, vanish and lie: the NVML source on the C library in its real child process."""

import os
import signal
from pathlib import Path

import pytest

from agent.probes.sane import clean
from agent.sources.nvml import NvmlSource
from agent.virtual.faults import Fault, apply
from agent.virtual.lifecycle import reset_gpu
from agent.virtual.state import VirtualState, uuid_of
from tests.agent.sources.collector import running
from tests.agent.sources.rig import child_pid, listening, make, picture, state_is, whole
from vocab.observations import DriverCall, DriverEvent, GpuSample, NodeSeen, SourceState

ONES_32 = 2**32 - 1
RECOVERY_ACTION = 0x8000


def of(index: int):
    return lambda one: one.index == index


async def test_seven_gpus_are_read_at_full_rate_while_one_hangs(source: NvmlSource, state: VirtualState) -> None:
    async with running(source) as found:
        await found.find(GpuSample, whole)
        state.gpus[2].hang = 1
        await found.find(DriverCall)
        start = len(found.seen)
        for _ in range(20):  # rounds of one that is well
            await found.find(GpuSample, of(0), after=len(found.seen))
        read = [one.index for one in found.seen[start:] if isinstance(one, GpuSample)]
        assert 2 not in read
        assert min(read.count(index) for index in (1, 3, 4, 5, 6, 7)) >= 18
        state.gpus[2].hang = 0
        await found.find(GpuSample, of(2), after=start)


async def test_a_start_that_hangs_names_the_call_and_ends_when_it_may(source: NvmlSource, state: VirtualState) -> None:
    state.block.hang_init = 1
    async with running(source) as found:
        call = await found.find(DriverCall)
        assert (call.gpu, call.call, call.state) == (None, "nvmlInit", "started")
        down = await found.find(SourceState)
        assert (down.state, (down.error or "").partition(":")[0]) == ("down", "HUNG")
        state.block.hang_init = 0
        await found.find(SourceState, state_is("up"))
        await found.find(GpuSample, whole)


async def test_a_child_that_stands_still_gets_another_beside_it(
    nvml_library: Path, state: VirtualState, tmp_path: Path
) -> None:
    async with running(make(nvml_library, state, tmp_path, give_up_s=0.2)) as found:
        await found.find(GpuSample, whole)
        pid = child_pid()
        os.kill(pid, signal.SIGSTOP)  # as one that the kernel keeps in the driver
        try:
            after = len(found.seen)
            await found.find(SourceState, state_is("down"), after=after)
            await found.find(SourceState, state_is("up"), after=after)
            await found.find(GpuSample, whole, after=len(found.seen))
        finally:
            os.kill(pid, signal.SIGCONT)


async def test_a_gpu_that_vanishes_renumbers_the_others_and_comes_back(source: NvmlSource, state: VirtualState) -> None:
    async with running(source) as found:
        await found.find(GpuSample, whole)
        state.gpus[0].removed = 1
        seen = await found.find(NodeSeen, lambda one: len(one.gpus) == 7)
        assert [gpu.uuid for gpu in seen.gpus] == [uuid_of("node-a", index) for index in range(1, 8)]
        assert [gpu.index for gpu in seen.gpus] == list(range(7))
        last = uuid_of("node-a", 7)
        await found.find(GpuSample, lambda one: one.gpu == last and one.index == 6)
        after = len(found.seen)
        state.gpus[0].removed = 0
        await found.find(NodeSeen, lambda one: len(one.gpus) == 8, after=after)
        await found.find(GpuSample, lambda one: one.gpu == uuid_of("node-a", 0) and whole(one), after=after)
        await found.find(GpuSample, lambda one: one.gpu == last and one.index == 7, after=after)


async def test_a_driver_that_is_upgraded_under_the_agent_is_read_on_until_its_child_must_start_anew(
    source: NvmlSource, state: VirtualState
) -> None:
    async with running(source) as found:
        await found.find(GpuSample, whole)
        state.block.init_error = 18  # the new library does not fit the module that is loaded
        await found.find(GpuSample, whole, after=len(found.seen))  # the old one is still mapped
        os.kill(child_pid(), signal.SIGKILL)
        mismatch = await found.find(SourceState, lambda one: (one.error or "").startswith("LIB_RM_VERSION_MISMATCH"))
        assert mismatch.state == "down"
        after = len(found.seen)
        state.block.driver = state.block.library = b"575.1"
        state.block.init_error = 0
        seen = await found.find(NodeSeen, lambda one: one.driver == "575.1", after=after)
        assert len(seen.gpus) == 8


async def test_counters_are_handed_on_as_they_are_whatever_they_do(source: NvmlSource, state: VirtualState) -> None:
    gpu, seen = state.gpus[0], []
    async with running(source) as found:
        await listening(found, state)
        for count in (5, 0, 2**31 + 7, 3):  # a reset, a jump, a wrap
            gpu.ecc_dram_uncorrected, after = count, len(found.seen)
            apply(state, Fault(kind="ecc", gpu=0, correctable=True))  # its event makes the next read a full one
            sample = await found.find(
                GpuSample,
                lambda one: one.index == 0 and one.readings is not None and one.readings.ecc_uncorrectable is not None,
                after=after,
            )
            assert sample.readings is not None
            seen.append(sample.readings.ecc_uncorrectable)
        assert 5 in seen
        assert seen[-1] == 3


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("temperature_c", 255, "temperature_c"),
        ("temperature_c", ONES_32, "temperature_c"),
        ("power_mw", ONES_32, "power_w"),
        ("sm_mhz", ONES_32, "sm_clock_hz"),
        ("performance_state", 32, "performance_state"),
        ("utilization_percent", ONES_32, "utilization_ratio"),
        ("memory_temperature_c", ONES_32, "memory_temperature_c"),
        ("energy_mj", 2**64 - 1, "energy_j"),
        ("memory_used_bytes", 2**64 - 1, "memory_used_bytes"),
        ("clock_reasons", 2**64 - 1, "clock_reasons"),
        ("sm_active_percent", float("nan"), "sm_active_ratio"),
    ],
)
async def test_a_sentinel_is_no_number(
    source: NvmlSource, state: VirtualState, field: str, value: float, name: str
) -> None:
    setattr(state.gpus[0], field, value)
    async with running(source) as found:
        for _ in range(3):
            sample = clean(await found.find(GpuSample, of(0), after=len(found.seen)))
        assert sample.readings is not None
        assert getattr(sample.readings, name) is None
        assert name in sample.errors


async def test_a_field_that_fails_by_itself_is_told_by_name_and_the_others_stay(
    source: NvmlSource, state: VirtualState
) -> None:
    state.gpus[3].bad_field, state.gpus[3].bad_code = 82, 999
    async with running(source) as found:
        sample = await found.find(GpuSample, lambda one: one.index == 3 and whole(one))
        assert sample.errors == {"memory_temperature_c": "UNKNOWN"}
        assert sample.readings is not None
        assert sample.readings.memory_temperature_c is None
        assert sample.readings.energy_j is not None
        state.gpus[3].bad_field = 0
        await found.find(GpuSample, lambda one: one.index == 3 and one.errors == {}, after=len(found.seen))


async def test_mig_that_is_switched_on_is_a_new_inventory_with_figures_of_each_instance(
    nvml_library: Path, state: VirtualState, tmp_path: Path
) -> None:
    gpu = state.gpus[1]
    async with running(make(nvml_library, state, tmp_path)) as found:
        await picture(found, 1)
        await listening(found, state)
        after = len(found.seen)
        for number, row in enumerate(gpu.instances[:2]):
            row.uuid, row.gi, row.ci = f"MIG-{number}".encode(), number + 1, 0
            row.memory_total_bytes, row.memory_used_bytes, row.sm_active_percent = 10 << 30, number << 30, 25.0
        gpu.instance_count, gpu.mig_mode = 2, 1
        state.push_event(1, 0x1, 0)  # some event: the driver's own for MIG is not in every header
        seen = await found.find(NodeSeen, lambda one: bool(one.gpus[1].mig), after=after)
        assert seen.gpus[1].mig == ({"uuid": "MIG-0", "gi": 1, "ci": 0}, {"uuid": "MIG-1", "gi": 2, "ci": 0})
        sample = await found.find(GpuSample, lambda one: one.index == 1 and bool(one.instances), after=after)
        assert {name: one.memory_used_bytes for name, one in sample.instances.items()} == {"1/0": 0, "2/0": 1 << 30}
        assert sample.readings is not None
        assert sample.readings.mig_mode == 1
        assert sample.readings.utilization_ratio is None  # not of a GPU that is divided
        gpu.instance_count, gpu.mig_mode, after = 0, 0, len(found.seen)
        state.push_event(1, 0x1, 0)
        await found.find(NodeSeen, lambda one: not one.gpus[1].mig, after=after)
        await found.find(  # what was learnt under MIG is forgotten
            GpuSample,
            lambda one: one.index == 1 and one.readings is not None and one.readings.utilization_ratio is not None,
            after=after,
        )


async def test_a_recovery_action_that_is_pushed_is_read_and_never_taken_as_none(
    source: NvmlSource, state: VirtualState
) -> None:
    async with running(source) as found:
        await picture(found, 4)
        await listening(found, state)
        after = len(found.seen)
        state.gpus[4].recovery_action = 2
        state.push_event(4, RECOVERY_ACTION, 0)  # nvml.h: the data of such an event is 0
        event = await found.find(DriverEvent, lambda one: one.type != "ecc", after=after)
        assert (event.type, event.data) == ("recovery_action", None)
        await found.find(
            GpuSample, lambda one: one.index == 4 and one.readings is not None and one.readings.recovery_action == 2
        )


async def test_after_a_reset_everything_is_asked_again(source: NvmlSource, state: VirtualState) -> None:
    apply(state, Fault(kind="remap", gpu=6))
    async with running(source) as found:
        before = await picture(found, 6)
        assert before.readings is not None
        assert before.readings.remap_pending == 1
        state.gpus[6].lost = 16
        await found.find(GpuSample, lambda one: one.error == "RESET_REQUIRED")
        state.gpus[6].lost = 0
        reset_gpu(state, 6)
        after = await picture(found, 6, after=len(found.seen))
        assert after.readings is not None
        assert after.readings.remap_pending == 0


@pytest.mark.parametrize(("generation", "ber"), [(3, None), (4, None), (5, 12e-12)])
async def test_links_of_every_generation_come_under_the_same_names(
    source: NvmlSource, state: VirtualState, generation: int, ber: float | None
) -> None:
    gpu = state.gpus[0]
    gpu.link_count = 12
    for link in gpu.links[:12]:
        link.version, link.recoveries, link.replays = generation, 3, 2
    gpu.links[1].ber = 12 << 8 | 12  # 12 * 10**-12
    gpu.nvlink_tx_kib = 12 * 1024
    async with running(source) as found:
        await picture(found, 0)
        await listening(found, state)
        for _ in range(3):  # which fields it has is learnt read by read
            state.push_event(0, 0x1, 0)
            sample = await found.find(GpuSample, lambda one: one.index == 0 and bool(one.links), after=len(found.seen))
        link = sample.links["1"]
        assert (link.state, link.recoveries) == (1, 3)
        assert link.replays == (2 if generation < 5 else None)
        assert link.effective_ber == (None if ber is None else pytest.approx(ber))
        assert sample.links["2"].effective_ber is None
        assert sample.readings is not None
        assert sample.readings.nvlink_tx_bytes == 12 * 1024 * 1024
