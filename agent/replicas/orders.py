"""What is said to engines and asked of them, each as a task with a deadline, so that the loop never waits.

One order at a time for each replica; a fence overtakes what is under way.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable

from agent.adapters.adapter import Farewell
from agent.replicas.door import Answer, Door
from agent.replicas.identity import send
from agent.replicas.record import ReplicaRecord
from agent.replicas.replica import Replica
from agent.replicas.steps import Drain, Fence, Unfence, Withdraw
from vocab.clock import Clock

PROBE_EVERY_S = 2.0
PROBE_WELL_S = 10.0  # of an engine that opened and whose beat goes on: HTTP tells only that the door opens too
OK = 200
PROBE_STARTING_S = 0.5

Farewells = Callable[[ReplicaRecord], Awaitable[bool]]  # SIGTERM; whether it got it
Order = Fence | Unfence | Withdraw | Drain


async def sigterm(record: ReplicaRecord) -> bool:
    """SIGTERM to a process of ours; one that has ended needs none."""
    send(record.identity, signal.SIGTERM, record.boot_id)
    return True


class Orders:
    """The conversations with this node's engines. Use as an async context manager; leaving it drops them."""

    def __init__(self, clock: Clock, done: Callable[[], None], farewell: Farewells | None = None) -> None:
        self._clock = clock
        self._done = done  # called after each order that ended
        self._farewell = farewell or sigterm
        self._door = Door()
        self._orders: dict[str, tuple[type[Order], asyncio.Task[None]]] = {}
        self._probes: dict[str, asyncio.Task[None]] = {}
        self._probed_at: dict[str, float] = {}

    async def __aenter__(self) -> "Orders":
        await self._door.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [*self._probes.values(), *(task for _, task in self._orders.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._door.__aexit__()

    def give(self, step: Order, replica: Replica) -> None:
        """Begin an order, unless one for this replica is under way that this one must wait for."""
        name = step.replica
        kind, task = self._orders.get(name, (None, None))
        if task is not None:
            if not isinstance(step, Fence) or kind is Fence:
                return
            task.cancel()
        task = asyncio.get_running_loop().create_task(self._say(step, replica))
        self._orders[name] = (type(step), task)
        task.add_done_callback(lambda done: self._end(name, done))

    def _end(self, name: str, task: asyncio.Task[None]) -> None:
        if self._orders.get(name, (None, None))[1] is task:
            del self._orders[name]
            self._done()

    async def _say(self, step: Order, replica: Replica) -> None:
        if replica.engine.farewell is Farewell.SIGTERM:
            await self._signal(step, replica)
            return
        url, clock = replica.record.url, self._clock
        match step:
            case Fence():
                replica.answered(await self._door.close(url, "fenced"), clock.monotonic(), admitting=False)
            case Withdraw():
                replica.withdrawn_at = clock.monotonic()
                replica.answered(await self._door.close(url, "draining"), clock.monotonic(), admitting=False)
            case Unfence():
                replica.answered(await self._door.reopen(url), clock.monotonic(), admitting=True)
            case Drain():
                replica.keep(drain_at=clock.monotonic())
                replica.told_to_exit(await self._door.drain(url, step.ttl_s), clock.monotonic())

    async def _signal(self, step: Order, replica: Replica) -> None:
        """The same to an engine without such a door: admission is ours alone to say, SIGTERM its one farewell."""
        now = self._clock.monotonic()
        match step:
            case Withdraw():
                replica.withdrawn_at = now
                replica.answered(Answer(status=OK), now, admitting=False)
            case Fence():
                replica.answered(Answer(status=OK), now, admitting=False)
            case Unfence():
                replica.answered(Answer(status=OK), now, admitting=True)
            case Drain():
                replica.keep(drain_at=now)
                heard = await self._farewell(replica.record)
                replica.told_to_exit(Answer(status=OK) if heard else Answer(error="broken"), now)

    def probe_if_due(self, replica: Replica) -> None:
        """Look at its door from time to time: readiness while it starts, health from then on."""
        name, now = replica.record.replica, self._clock.monotonic()
        every = PROBE_STARTING_S
        if replica.was_ready:
            every = PROBE_WELL_S if replica.is_well(now) else PROBE_EVERY_S
        if name in self._probes or now - self._probed_at.get(name, -every) < every:
            return
        self._probed_at[name] = now
        self._probes[name] = task = asyncio.get_running_loop().create_task(self._probe(replica))
        task.add_done_callback(lambda _: self._probes.pop(name, None))

    async def _probe(self, replica: Replica) -> None:
        url, engine = replica.record.url, replica.engine
        replica.probed(await self._door.look(url + (engine.health if replica.was_ready else engine.ready)))
        if not engine.has_beat and replica.was_ready:
            text = await self._door.metrics(url)
            if text is not None:
                replica.measured(text, self._clock.monotonic())
