"""What the agent's sources cost: NVML in its child process on the C fake, kernel log and virtual node.

    python -m tests.bench.nvml_cost --seconds 120

Prints a table: CPU as percent of one core, PSS of each process in MiB, and NVML calls a minute and GPU. Eight GPUs
at the agent's own cadence (1 s fast, 10 s slow, 1 h static). The source's own side runs in this process, so its PSS
is that of a Python with only the sources loaded.
"""

import argparse
import asyncio
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from agent.sources.kmsg import KmsgSource, VirtualKmsg
from agent.sources.nvml import NvmlSource
from agent.sources.source import Source
from agent.sources.virtual import VirtualSource
from agent.virtual.state import VirtualState
from tests.fakes.nvml.build import build
from vocab.clock import SystemClock
from vocab.observations import AnyObservation

TICKS = os.sysconf("SC_CLK_TCK")
WARM_UP_S = 3.0


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has used, its ended threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def pss_mib(pid: int) -> float:
    """Proportional set size: its private memory and its share of what it shares."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def threads(pid: int) -> int:
    """How many threads it has."""
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def children() -> list[int]:
    """Pids of the processes that this one has started."""
    pids = []
    for task in Path("/proc/self/task").iterdir():
        pids += [int(pid) for pid in (task / "children").read_text().split()]
    return pids


async def measure(source: Source, seconds: float) -> tuple[float, dict[int, float], int]:
    """CPU seconds of this process and of each child over ``seconds``, and how many observations came."""
    found: list[AnyObservation] = []
    running = asyncio.create_task(source.run(found.append))
    await asyncio.sleep(WARM_UP_S)
    found.clear()
    before = {pid: cpu_s(pid) for pid in children()}
    own = time.process_time()
    await asyncio.sleep(seconds)
    own = time.process_time() - own
    used = {pid: cpu_s(pid) - was for pid, was in before.items()}
    for pid in used:
        print(f"  child {pid}: PSS {pss_mib(pid):.1f} MiB, threads {threads(pid)}")
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    return own, used, len(found)


async def main() -> None:
    """Measure the three sources one after the other and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    seconds = parser.parse_args().seconds
    clock = SystemClock()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        path = folder / "virtual.state"
        state = VirtualState.create(path, "bench")
        library = build(folder)
        nvml = NvmlSource("bench", library, folder, clock, environment={"CORRAL_FAKE_NVML_STATE": str(path)})
        sources: list[Source] = [
            nvml,
            VirtualSource("bench", path, clock),
            KmsgSource("bench", VirtualKmsg(state), clock, state.boot_id),
        ]
        print(f"{'source':<10}{'own CPU %':>11}{'child CPU %':>13}{'observations/s':>16}{'calls/min/GPU':>15}")
        for source in sources:
            calls = int(state.block.calls)
            own, used, count = await measure(source, seconds)
            made = (int(state.block.calls) - calls) / (seconds + WARM_UP_S) * 60 / len(state.gpus)
            rates = own / seconds * 100, sum(used.values()) / seconds * 100, count / seconds, made
            print(f"{source.name:<10}{rates[0]:>11.2f}{rates[1]:>13.2f}{rates[2]:>16.1f}{rates[3]:>15.0f}")
        print(f"this process: PSS {pss_mib(os.getpid()):.1f} MiB")


if __name__ == "__main__":
    asyncio.run(main())
