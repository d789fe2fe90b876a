"""The whole agent over NVML's C library, read in its real child process."""

import asyncio

from agent.virtual.state import VirtualState
from tests.agent.test_agent import configured, running
from tests.fakes.nvml.fixture import nvml_library

__all__ = ["nvml_library"]


def real(folder, library):
    return configured(
        folder, virtual=None, kernel_log="kmsg", kmsg=folder / "kmsg", nvml_library=library, dcgm="off",
        observe_replicas=False,
    )  # fmt: skip


async def test_scrapes_are_answered_from_memory_while_a_gpu_hangs(tmp_path, nvml_library, monkeypatch):
    state = VirtualState.create(tmp_path / "virtual.state", "n1")
    monkeypatch.setenv("CORRAL_FAKE_NVML_STATE", str(state.path))
    async with running(real(tmp_path, nvml_library)) as node:
        await node.until(lambda: len(node.agent.latest.proven) == 8, 30.0)
        state.gpus[4].hang = 1
        hung, other = (node.agent.latest.seen.gpus[index].uuid for index in (4, 5))
        seen = node.agent.latest.gpus[hung].seen
        await node.until(lambda: node.agent.latest.gpus[other].seen > seen + 2.0, 30.0)  # rounds without the fifth
        calls = state.gpus[4].calls
        for text in await asyncio.gather(node.metrics(), node.metrics()):
            assert f'corral_gpu_up{{gpu="{other}"}} 1.0' in text
            assert "corral_agent_source_last_success_timestamp_seconds" in text
        assert state.gpus[4].calls == calls  # none of them asked the driver


async def test_counters_that_are_broken_get_their_reader_started_anew_once(tmp_path, nvml_library, monkeypatch):
    state = VirtualState.create(tmp_path / "virtual.state", "n1")
    gpu = state.gpus[0]
    gpu.utilization_percent, gpu.power_mw = 100, 600_000
    gpu.graphics_percent = gpu.sm_active_percent = 0.0
    monkeypatch.setenv("CORRAL_FAKE_NVML_STATE", str(state.path))
    async with running(real(tmp_path, nvml_library)) as node:
        await node.until(node.agent.hardware.driver_pids, 20.0)
        first = node.agent.hardware.driver_pids()
        await node.until(node.agent.loop.profiling_broke.is_set, 30.0)
        await node.until(lambda: (found := node.agent.hardware.driver_pids()) and not found & first, 30.0)
        second = node.agent.hardware.driver_pids()
        await node.until(lambda: "profiling_broken" in {event.code for event in node.agent.latest.events.values()})
        uuid = node.agent.latest.seen.gpus[0].uuid
        seen = node.agent.latest.gpus[uuid].seen
        await node.until(lambda: node.agent.latest.gpus[uuid].seen > seen, 20.0)  # it is read again
        kept = node.agent.latest.gpus[uuid].sample
        assert (kept.readings.sm_active_ratio, kept.readings.utilization_ratio) == (None, 1.0)
        assert node.agent.hardware.driver_pids() == second
        assert node.agent.supervisor.fenced == frozenset()
