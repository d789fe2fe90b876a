"""What a controller's own work costs, without HTTP: processor time, and the longest that its loop was held.

    python -m tests.bench.fleet_inside [--nodes 500] [--beats 20000] [--faults 100] [--events 50000]

A real controller on SQLite in this process, its door left out: reports go where the door hands them on, as bytes. The
processor's time is that of the whole process, the thread that commits with it; it says much the same on a machine that
others use too. *Held* is what the loop's thread computed between two of its turns, at most. In this order:

    join        every node reports for the first time, and the fleet is drawn
    storm       a fault on each node at one moment: from here on each node has an open incident
    beat        heartbeats that tell nothing new
    fault       single faults, one after the other, of the nodes in turn
    ingest      batches of 500 events of one node after another that lead to nothing, eight on their way
"""

import argparse
import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import uvloop

from controller import garbage
from controller.api.agents import Agents
from controller.app import Controller, controller
from controller.config import Config
from controller.deciding import ingest
from controller.deciding.conductor import Submission
from tests.bench.fleet_load import batch, first
from tests.bench.fleet_nodes import GPUS, Fleet
from vocab.clock import SystemClock

TURN_S = 0.002  # between two looks at how long the loop was held
ON_THEIR_WAY = 8
BATCH = 500


class Held:
    """How long the loop's thread computed between two turns of the loop, at most."""

    def __init__(self) -> None:
        self.longest_s = 0.0

    async def run(self) -> None:
        """Look until cancelled."""
        before = time.thread_time()
        while True:
            await asyncio.sleep(TURN_S)
            now = time.thread_time()
            self.longest_s, before = max(self.longest_s, now - before), now


class Inside:
    """A controller that thinks, and the fleet that reports to it."""

    def __init__(self, made: Controller, nodes: int) -> None:
        self._made = made
        self._held = Held()
        self._agents = Agents(made.conductor, made.dispatch, made.reports, made.export, ())
        self.fleet = Fleet(0, nodes, readings=3)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Thinking, drawing and watched."""
        tasks = [asyncio.create_task(each) for each in (self._made.conductor.run(), self._held.run())]
        tasks.append(asyncio.create_task(self._made.conductor.draw()))
        try:
            while not self._made.conductor.ready[0]:
                await asyncio.sleep(TURN_S)
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def report(self, raw: bytes) -> None:
        """A batch, until it is on disk."""
        await self._made.conductor.submit(Submission(batch=ingest.checked(ingest.decode_batch.decode(raw))))

    async def beat(self, raw: bytes) -> None:
        """A heartbeat, as the door takes it."""
        heard = self._agents.heartbeat(raw)
        assert heard is not None
        if self._agents.beat(heard, raw) is None:
            await self.report(raw)

    async def measure(self, name: str, each: Callable[[bytes], Awaitable[None]], bodies: list[bytes], at_once: int,
                      of: int = 1) -> None:  # fmt: skip
        """Have them all taken, so many on their way; ``of``: how many things are in each of them."""
        await asyncio.sleep(2 * TURN_S)  # what has made the bodies was no work of the controller's
        self._held.longest_s = 0.0
        cpu, began = time.process_time(), time.perf_counter()
        for start in range(0, len(bodies), at_once):
            await asyncio.gather(*(each(body) for body in bodies[start : start + at_once]))
        await asyncio.sleep(TURN_S)
        cpu_s, wall_s, count = time.process_time() - cpu, time.perf_counter() - began, len(bodies) * of
        print(
            f"{name:10} {count:8} {cpu_s / count * 1e6:9.1f} us of processor each ({count / cpu_s:8.0f} a second)"
            f"   held {self._held.longest_s * 1e3:6.0f} ms at most   {wall_s:6.1f} s",
            flush=True,
        )


async def measure(options: argparse.Namespace, folder: str) -> None:
    """All of it, printed as it comes."""
    async with controller(Config(state_dir=folder), SystemClock()) as made:
        inside = Inside(made, options.nodes)
        names, fault = inside.fleet.names, inside.fleet.fault
        async with inside.running():
            await inside.measure("join", inside.report, [first(name, GPUS) for name in names], 64)
            await inside.measure("storm", inside.report, [fault(name, 1, "xid:95") for name in names], len(names))
            await asyncio.sleep(1.0)
            beats = (names[n % len(names)] for n in range(options.beats))
            bodies = [batch(name, gpu=n // len(names) % GPUS, readings=3) for n, name in enumerate(beats)]
            await inside.measure("beat", inside.beat, bodies, 64)
            some = names[:: max(1, len(names) // options.faults)][: options.faults]
            await inside.measure("fault", inside.report, [fault(name, 0, "xid:48") for name in some], 1)
            count = options.events // BATCH
            bodies = [fault(names[n % len(names)], n % GPUS, "xid:13", BATCH) for n in range(count)]
            await inside.measure("ingest", inside.report, bodies, ON_THEIR_WAY, BATCH)


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--beats", type=int, default=20_000)
    parser.add_argument("--faults", type=int, default=100, help="one after the other")
    parser.add_argument("--events", type=int, default=50_000)
    garbage.set_aside()
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):
        uvloop.run(measure(parser.parse_args(), folder))


if __name__ == "__main__":
    main()
