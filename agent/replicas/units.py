"""Replicas that are units of systemd: what is asked of whoever starts them, each as a task with a deadline.

Such a replica runs as another user: the agent can neither signal it nor be told how it ended by the kernel. All this
goes through the root helper, so nothing here happens at once and the loop waits for none of it.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import msgspec

from agent.replicas.record import ReplicaRecord
from agent.replicas.replica import Replica
from vocab.errors import Refused, Unreachable
from vocab.observations import Exit

log = logging.getLogger(__name__)

UNTOLD_S = 30.0  # how a process ended is asked for so long; then it was not seen
AGAIN_S = 0.5


class Last(msgspec.Struct, frozen=True):
    """How a unit's process ended, and the end of its log."""

    exit: Exit
    log: str


class Units(Protocol):
    """Whoever starts and ends units. Raises Refused if it may not, Unreachable if nobody knows what came of it."""

    async def start(self, record: ReplicaRecord) -> int:
        """Start the unit of this record; its main process."""
        ...

    async def end(self, replica: str, *, kill: bool) -> None:
        """SIGTERM to its main process, or SIGKILL to all of it."""
        ...

    async def last(self, replica: str) -> Last | None:
        """How it ended; None while it runs."""
        ...

    async def clear(self, replica: str) -> None:
        """Forget that it ended."""
        ...


class Lodging:
    """What is under way with the units of this node. Use as an async context manager; leaving it drops all of it."""

    def __init__(self, units: Units, done: Callable[[], None]) -> None:
        self._units = units
        self._done = done  # called after each task
        self._starts: dict[str, asyncio.Task[None]] = {}
        self._asks: dict[str, asyncio.Task[None]] = {}
        self._rest: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Lodging":
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [*self._starts.values(), *self._asks.values(), *self._rest]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def starts(self, replica: str) -> bool:
        """Whether it is being started: nothing else is done with it meanwhile."""
        return replica in self._starts

    def start(self, replica: str, work: Coroutine[Any, Any, None]) -> None:
        """Begin a start."""
        self._begin(self._starts, replica, work)

    def ask(self, replica: Replica) -> None:
        """Learn how its process ended, unless that is being asked already."""
        if replica.record.replica not in self._asks:
            self._begin(self._asks, replica.record.replica, self._ask(replica))

    def kill(self, replica: str) -> None:
        """SIGKILL to all of it."""
        self._by_the_way(self.end(replica, kill=True))

    def terminate(self, replica: str) -> None:
        """SIGTERM."""
        self._by_the_way(self.end(replica, kill=False))

    def clear(self, replica: str) -> None:
        """Nobody wants it any more."""
        self._by_the_way(self._clear(replica))

    async def farewell(self, record: ReplicaRecord) -> bool:
        """SIGTERM; whether it got it."""
        return await self.end(record.replica, kill=False)

    async def end(self, replica: str, *, kill: bool) -> bool:
        """A signal; whether it got it. Who sends it asks again if not."""
        try:
            await self._units.end(replica, kill=kill)
        except (Refused, Unreachable) as error:
            log.error("a replica's unit could not be signalled", extra={"replica": replica, "error": str(error)})
            return False
        return True

    async def _clear(self, replica: str) -> None:
        try:
            await self._units.clear(replica)
        except (Refused, Unreachable) as error:
            log.warning("a replica's unit could not be forgotten", extra={"replica": replica, "error": str(error)})

    async def _ask(self, replica: Replica) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + UNTOLD_S
        while True:
            try:
                last = await self._units.last(replica.record.replica)
            except (Refused, Unreachable) as error:
                log.warning("how a replica ended", extra={"replica": replica.record.replica, "error": str(error)})
                last = None
            if last is not None or loop.time() > until:
                break
            await asyncio.sleep(AGAIN_S)
        await asyncio.to_thread(replica.folder.keep_log, last.log if last is not None else "")
        replica.told = last.exit if last is not None else Exit()

    def _begin(self, tasks: dict[str, asyncio.Task[None]], replica: str, work: Coroutine[Any, Any, None]) -> None:
        tasks[replica] = task = asyncio.get_running_loop().create_task(work)

        def over(done: asyncio.Task[None]) -> None:
            del tasks[replica]
            self._over(done)

        task.add_done_callback(over)

    def _by_the_way(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._rest.add(task)
        task.add_done_callback(self._rest.discard)
        task.add_done_callback(self._over)

    def _over(self, done: asyncio.Task[None]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            log.error("a task of a unit broke", exc_info=error)
        self._done()
