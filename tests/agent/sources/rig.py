"""The NVML source on the C library, sped up: how tests make it, and what they wait for."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent.sources.nvml import NvmlSource
from agent.virtual.state import VirtualState
from agent.whole import joined
from tests.agent.sources.collector import Collector
from vocab.clock import SystemClock
from vocab.observations import DriverEvent, GpuSample

HANG_AFTER_S = 0.3
ECC_EVENT = 0x1


def make(library: Path, state: VirtualState, run_dir: Path, **limits: Any) -> NvmlSource:
    fast = {"period_s": 0.05, "hang_after_s": HANG_AFTER_S, "look_s": 0.05, "inventory_s": 0.2, "retry_s": 0.05}
    environment = {"CORRAL_FAKE_NVML_STATE": str(state.path)}
    return NvmlSource("node-a", library, run_dir, SystemClock(), environment=environment, **{**fast, **limits})


def whole(sample: GpuSample) -> bool:
    """Whether GPM, which needs two samples, has spoken."""
    return sample.readings is not None and sample.readings.sm_active_ratio is not None


async def picture(found: Collector, index: int, *, after: int = 0) -> GpuSample:
    """The whole of what is known of one GPU, GPM included."""
    seen: list[GpuSample] = []

    def is_whole(sample: GpuSample) -> bool:
        if sample.index != index or sample.readings is None:
            return False
        seen.append(joined(seen[-1] if seen else None, sample))
        return whole(seen[-1]) and bool(seen[-1].links)

    await found.find(GpuSample, is_whole, after=after)
    return seen[-1]


async def listening(found: Collector, state: VirtualState) -> None:
    """Wait until the child hears the driver's events: those before that are nobody's."""
    for _ in range(200):
        state.push_event(7, ECC_EVENT, 0)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await found.find(DriverEvent)
                return
    raise AssertionError("no event was heard")


def state_is(word: str) -> Any:
    return lambda one: one.state == word


def child_pid() -> int:
    """The pid of the one NVML child of this process."""
    pids = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    (pid,) = [int(pid) for pid in pids if b"nvml_child" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return pid


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
