"""How long a scrape of the agent takes while a GPU is slow to read, and whether it asks the driver anything.

    python -m tests.bench.scrape [--seconds 60]

The case GF-072: every call on one of eight GPUs blocks for twelve seconds of fifteen, and two scrapers come at once,
each second. The agent runs whole, over the C library of the tests.
"""

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path

from agent.virtual.state import VirtualState
from tests.agent.test_agent import Running, running
from tests.agent.test_agent_driver import real
from tests.fakes.nvml.build import build

BLOCKS_S, EVERY_S = 12.0, 15.0


async def slow(state: VirtualState) -> None:
    """The fifth GPU, as it is in the case."""
    while True:
        state.gpus[4].hang = 1
        await asyncio.sleep(BLOCKS_S)
        state.gpus[4].hang = 0
        await asyncio.sleep(EVERY_S - BLOCKS_S)


async def scraped(node: Running) -> float:
    """Seconds of one scrape."""
    began = time.perf_counter()
    await node.metrics()
    return time.perf_counter() - began


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    until = time.monotonic() + parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        state = VirtualState.create(folder / "virtual.state", "n1")
        os.environ["CORRAL_FAKE_NVML_STATE"] = str(state.path)
        async with running(real(folder, build(folder))) as node:
            await node.until(lambda: len(node.agent.latest.proven) == 8, 60.0)
            hanging, took = asyncio.create_task(slow(state)), []
            while time.monotonic() < until:
                took += await asyncio.gather(scraped(node), scraped(node))
                await asyncio.sleep(1.0)
            hanging.cancel()
            state.gpus[4].hang = 0
    took = sorted(1e3 * seconds for seconds in took)
    print(f"| {len(took)} scrapes, two at once, while a GPU blocks | ms |\n|---|---|")
    for name, share in (("p50", 0.5), ("p99", 0.99), ("worst", 1.0)):
        print(f"| {name} | {took[min(len(took) - 1, int(share * len(took)))]:.1f} |")


if __name__ == "__main__":
    asyncio.run(main())
