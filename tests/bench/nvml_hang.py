"""How soon a driver call that hangs is told, and what it costs the other GPUs: the agent's NVML source as it runs.

    python -m tests.bench.nvml_hang [--hangs 5]

The C library of the tests blocks every call on one of eight GPUs. The time runs from the call's own begin, as it
stands in the call table, until the source tells of it; its deadline is 5 s. Reads are counted for ten seconds
before and while it hangs.
"""

import argparse
import asyncio
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from agent.calls import CallTable
from agent.sources.hang_watch import HANG_AFTER_S
from agent.sources.nvml import NvmlSource
from agent.virtual.state import VirtualState
from tests.fakes.nvml.build import build
from vocab.clock import SystemClock
from vocab.observations import AnyObservation, DriverCall, GpuSample

COUNT_S = 10.0


class Heard:
    """When calls began to hang, and how many samples came of each GPU."""

    def __init__(self) -> None:
        self.told = asyncio.Event()
        self.samples: dict[int | None, int] = {}

    def take(self, observation: AnyObservation) -> None:
        """As the agent's loop would."""
        match observation:
            case GpuSample():
                self.samples[observation.index] = self.samples.get(observation.index, 0) + 1
            case DriverCall(state="started"):
                self.told.set()

    async def count(self) -> dict[int | None, int]:
        """Samples by index over ten seconds."""
        self.samples = {}
        await asyncio.sleep(COUNT_S)
        return dict(self.samples)


def began(table: Path, uuid: str) -> float:
    """When the call that hangs began, on the monotonic clock."""
    calls = CallTable.open(table)
    return next(call.began_ns / 1e9 for _, call in calls.all_under_way() if call.gpu == uuid)


async def one(state: VirtualState, heard: Heard, index: int, table: Path) -> tuple[float, int, int]:
    """Seconds until a hang was told, and the fewest samples of another GPU before and while it lasts."""
    others = [n for n in range(len(state.gpus)) if n != index]
    before = await heard.count()
    heard.told.clear()
    state.gpus[index].hang = 1
    await heard.told.wait()
    took = time.monotonic() - began(table, state.gpus[index].uuid.decode())
    during = await heard.count()
    state.gpus[index].hang = 0
    return took, min(before.get(n, 0) for n in others), min(during.get(n, 0) for n in others)


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hangs", type=int, default=5)
    hangs = parser.parse_args().hangs
    with tempfile.TemporaryDirectory() as place:
        folder, heard = Path(place), Heard()
        state = VirtualState.create(folder / "node.state", "bench")
        environment = {"CORRAL_FAKE_NVML_STATE": str(state.path)}
        source = NvmlSource("bench", build(folder), folder, SystemClock(), environment=environment)
        running = asyncio.create_task(source.run(heard.take))
        await asyncio.sleep(5)
        found = [await one(state, heard, number % len(state.gpus), folder / "nvml-calls-1") for number in range(hangs)]
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    print(f"| {hangs} hangs of one GPU of eight | |\n|---|---|")
    print(f"| deadline of a call | {HANG_AFTER_S:g} s |")
    print(f"| told after, worst | {max(took for took, _, _ in found):.2f} s |")
    print(f"| reads of the other GPUs in {COUNT_S:g} s before, fewest | {min(before for _, before, _ in found)} |")
    print(f"| while it hangs, fewest | {min(during for _, _, during in found)} |")


if __name__ == "__main__":
    asyncio.run(main())
