"""How long a fault takes from the kernel record to the fence, and to the hold on the controller's disk.

    python -m tests.bench.drills [--drills 20]

A whole fleet of real processes with a replica program that has no model ("without engines"). Each drill
writes an Xid 79 on the next GPU of a virtual node. Three moments are taken on one clock:

    written   the agent has taken the drill's request; the kernel record is written a moment later
    fenced    the fence's own time in the agent, when the GPU's replicas were told to stop admitting
    stored    the policy hold's line arrives on the controller's stream, which sends only what is committed
"""

import argparse
import asyncio
import contextlib
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from tests.e2e.fleet import Fleet, fleet
from wire.sse import read_stream


async def one(running: Fleet, index: int, uuid: str) -> tuple[float, float]:
    """Seconds from written to fenced, and to stored, of one drill."""
    found: asyncio.Future[tuple[float, float]] = asyncio.get_running_loop().create_future()
    opened = asyncio.Event()
    written = 0.0

    async def listen() -> None:
        fenced: float | None = None
        stored: float | None = None
        async with running.session.get(f"{running.plan.controller}/api/v1/watch") as response:
            opened.set()
            async for _, _, raw in read_stream(response):
                line: dict[str, Any] = msgspec.json.decode(raw)
                if line.get("kind") != "hold" or line.get("subject") != {"gpu": uuid} or line.get("op") != "placed":
                    continue
                if line["owner"] == "policy":
                    stored = time.time()
                else:
                    fenced = line["at"]
                if fenced is not None and stored is not None and not found.done():
                    found.set_result((fenced, stored))
                    return

    listener = asyncio.create_task(listen())
    await asyncio.wait_for(opened.wait(), 10)
    written = time.time()
    await running.drill("xid", index, code=79)
    fenced, stored = await asyncio.wait_for(found, 30)
    listener.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await listener
    return fenced - written, stored - written


async def measure(drills: int) -> list[tuple[float, float]]:
    """All drills, two a fleet: the agent itself fences no more than two GPUs of a node."""
    times: list[tuple[float, float]] = []
    while len(times) < drills:
        with tempfile.TemporaryDirectory() as folder:
            async with fleet(Path(folder), real_engine=False) as running:
                gpus = (await running.gpus())[: min(2, drills - len(times))]
                times += [await one(running, gpu["index"], gpu["uuid"]) for gpu in gpus]
        print(f"{len(times)} of {drills} drills", flush=True)
    return times


def show(times: list[tuple[float, float]]) -> None:
    """Print p50 and p99 of both distances."""
    print(f"\n| {len(times)} drills, milliseconds | p50 | p99 | worst |\n|---|---|---|---|")
    for name, column in (("kernel record → fence", 0), ("kernel record → hold stored", 1)):
        values = sorted(1000 * row[column] for row in times)
        p99 = statistics.quantiles(values, n=100, method="inclusive")[98]
        print(f"| {name} | {statistics.median(values):.1f} | {p99:.1f} | {values[-1]:.1f} |")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drills", type=int, default=20)
    show(asyncio.run(measure(parser.parse_args().drills)))


if __name__ == "__main__":
    main()
