"""Keeps one child process with a driver's library running, and never waits for it.

Its frames go to whoever keeps it; its call table shows which calls hang. If it dies it is started again with
back-off; if it is stuck as a whole (every thread, or its start) a second one is started beside it, two at
most: a process inside a hung driver cannot be killed.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from agent.calls import Call
from agent.sources.child import STACKS
from agent.sources.child_process import ChildProcess
from agent.sources.frames import Failed, Frame, Opened, Stacks
from agent.sources.hang_watch import HANG_AFTER_S, Change, HangWatch
from agent.sources.health import Health
from agent.sources.stacks import taken
from vocab.clock import Clock
from wire.backoff import delay_s

log = logging.getLogger(__name__)

LOOK_S = 1.0  # between two looks at the call table
GIVE_UP_S = 30.0  # a child that is stuck for so long gets a second one beside it
RETRY_MOST_S = 60.0
ANSWER_S = 2.0  # a child whose own threads run tells at once where they stand
SILENT_S = 3.0  # beyond the time that a call may take: a child that reads GPUs speaks each second


class Kept(Protocol):
    """The source whose child this is: it decides what frames and hangs mean."""

    async def ready(self) -> bool:
        """Whether a child has a chance; asked before each start, and again after a back-off."""
        ...

    def arguments(self) -> Sequence[str]:
        """Of the child's command line."""
        ...

    def take(self, frame: Frame) -> None:
        """A frame has come."""
        ...

    def hung(self, pid: int, changes: Sequence[Change]) -> None:
        """Calls of the child ``pid`` that began to hang or came back."""
        ...

    def stands(self, pid: int, calls: Sequence[Call], where: str) -> None:
        """Where the threads of the child ``pid`` stood when these calls began to hang."""
        ...

    def looked(self, keeper: "Keeper", watch: HangWatch, *, stuck: bool) -> None:
        """A look at the call table of the child at hand is over."""
        ...

    def ended(self, error: str) -> None:
        """The child has gone; ``error`` is why."""
        ...

    def threads(self) -> int:
        """How many GPUs the child reads, each in a thread of its own; 0: one thread reads all."""
        ...


class Limits:
    """How patient a keeper is: plain values, seconds all."""

    def __init__(
        self,
        *,
        hang_after_s: float = HANG_AFTER_S,
        give_up_s: float = GIVE_UP_S,
        look_s: float = LOOK_S,
        retry_s: float = 1.0,
    ) -> None:
        self.hang_after_s = hang_after_s
        self.give_up_s = give_up_s
        self.look_s = look_s
        self.retry_s = retry_s


class Keeper:
    """One child of ``module`` at a time; a stuck one is left alone. The call tables lie in ``run_dir``."""

    def __init__(
        self,
        kept: Kept,
        name: str,
        module: str,
        run_dir: Path,
        clock: Clock,
        limits: Limits,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._kept = kept
        self._name = name
        self._module = module
        self._run_dir = run_dir
        self._clock = clock
        self._limits = limits
        self._environment = environment or {}  # added to the child's
        self._child: ChildProcess | None = None
        self._error: str | None = None
        self._stuck_since: float | None = None
        self._heard_at = 0.0
        self._old: tuple[ChildProcess, HangWatch] | None = None  # stuck, and left alone
        self._awake = asyncio.Event()
        self._awake.set()
        self._rested: ChildProcess | None = None  # ended by us, for a while
        self._told: asyncio.Queue[str] = asyncio.Queue(1)  # where the child's threads stand, in its own words
        self._autopsies: set[asyncio.Task[None]] = set()
        self.health = Health()
        self.live = False  # whether the child at hand has opened what it reads

    async def run(self, node: str) -> None:
        """Keep a child until cancelled; ``node`` spreads the back-offs of a fleet."""
        attempt = turn = 0
        while True:
            attempt += 1
            await self._awake.wait()
            if await self._kept.ready():
                turn += 1
                if await self._keep(turn):
                    continue
                attempt = 1 if self.live else attempt
            await asyncio.sleep(delay_s(attempt, node, first_s=self._limits.retry_s, most_s=RETRY_MOST_S))

    async def rest(self) -> None:
        """End the child, and start none until ``wake``: somebody needs the driver shut. Its silence is not reported."""
        self._awake.clear()
        await self.renew()

    async def renew(self) -> None:
        """End the child; another follows at once, unless it is time to rest. Its silence is not reported."""
        self._rested = self._child
        if self._child is not None and not self._child.ended:
            await self._child.stop()

    def wake(self) -> None:
        """Go on."""
        self._awake.set()

    def pids(self) -> frozenset[int]:
        """The children that live."""
        children = (self._child, self._old[0] if self._old else None)
        return frozenset(child.pid for child in children if child is not None and not child.ended)

    def tell(self, line: str) -> None:
        """Write the child at hand a line."""
        if self._child is not None:
            self._child.tell(line)

    async def _keep(self, turn: int) -> bool:
        """One child from its start on; True if another may follow at once: it was left alone, stuck, or had to rest."""
        table = self._run_dir / f"{self._name}-calls-{turn % 2}"  # two children at most, each with its own
        try:
            child = await ChildProcess.start(self._module, table, self._kept.arguments(), self._environment)
        except OSError as error:  # no memory or room for it; tried again like a child that broke
            log.error("the child of a source cannot be started", extra={"source": self._name, "error": str(error)})
            self.live = False
            self._kept.ended("NOT_STARTED")
            return False
        self.health.starts += 1
        watch = HangWatch(self._limits.hang_after_s)
        self._child, self._error, self._stuck_since, self.live = child, None, None, False
        self._heard_at = self._clock.monotonic()
        try:
            if await self._attend(child, watch):
                self._old = (child, watch)
                return True
            code = await child.wait()
        except asyncio.CancelledError:
            await child.stop()
            if self._old:
                await self._old[0].stop()
            raise
        if child is self._rested:
            return True
        if self._error is None:
            log.error("the child of a source has ended", extra={"source": self._name, "exit_code": code})
        self._kept.ended(self._error or "CHILD_DIED")
        return False

    async def _attend(self, child: ChildProcess, watch: HangWatch) -> bool:
        """Follow a child until it ends (False), or is so stuck that it is left alone (True)."""
        reading = asyncio.create_task(self._read(child))
        try:
            while not reading.done():
                await asyncio.wait({reading}, timeout=self._limits.look_s)
                self._look(child, watch)
                if self._old is None and self._stuck_for() >= self._limits.give_up_s:
                    return True
            reading.result()  # a defect of ours in there is not swallowed
            return False
        finally:
            reading.cancel()

    async def _read(self, child: ChildProcess) -> None:
        while (frame := await child.frame()) is not None:
            self._heard_at = self._clock.monotonic()
            match frame:
                case Failed(error=error):
                    self._error = error
                case Opened():
                    self.live, self._error = True, None
                case Stacks(text=text):
                    with contextlib.suppress(asyncio.QueueFull):
                        self._told.put_nowait(text)
                    continue
            self._kept.take(frame)

    # hangs

    def _look(self, child: ChildProcess, watch: HangWatch) -> None:
        now = self._clock.monotonic()
        self._look_at_old(int(now * 1e9))
        under_way = child.under_way()
        self.health.call_s = max((call.overdue_s(int(now * 1e9)) for call in under_way.values()), default=0.0)
        self._report(child, watch, watch.look(under_way, int(now * 1e9)))
        stuck = watch.stuck(self._kept.threads() if self.live else 0) or self._is_silent(now)
        self._stuck_since = (self._stuck_since or now) if stuck else None
        self._kept.looked(self, watch, stuck=stuck)

    def _is_silent(self, now: float) -> bool:
        """Whether a child whose threads read GPUs says nothing at all: it is stopped, or starved by its node."""
        return self.live and self._kept.threads() > 0 and now - self._heard_at >= SILENT_S + self._limits.hang_after_s

    def _report(self, child: ChildProcess, watch: HangWatch, changes: Sequence[Change]) -> None:
        for change in changes:
            told = {"source": self._name, "gpu": change.call.gpu, "call": change.call.call, "pid": child.pid}
            log.warning("a call hangs" if change.state == "started" else "a call came back", extra=told)
        if changes:
            self._kept.hung(child.pid, changes)
        if begun := [change.call for change in changes if change.state == "started"]:
            task = asyncio.create_task(self._autopsy(child, watch, begun))
            self._autopsies.add(task)
            task.add_done_callback(self._autopsies.discard)

    async def _autopsy(self, child: ChildProcess, watch: HangWatch, begun: Sequence[Call]) -> None:
        """Keep what can be read of a child that hangs: by the kernel, and by itself if it still answers."""
        while not self._told.empty():
            self._told.get_nowait()
        child.tell(STACKS)
        where = await taken(child.pid)
        own = ""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_S if child is self._child else 0.0):
                own = await self._told.get()
        hung = [call for call in begun if call in watch.hung.values()]  # what came back meanwhile is not told again
        if hung:
            self._kept.stands(child.pid, hung, "\n".join(filter(None, (where, own or "its program does not answer"))))

    def _stuck_for(self) -> float:
        return 0.0 if self._stuck_since is None else self._clock.monotonic() - self._stuck_since

    def _look_at_old(self, now_ns: int) -> None:
        """A child that was left alone ends as soon as the driver lets it."""
        if self._old is None:
            return
        child, watch = self._old
        self._report(child, watch, watch.look({} if child.ended else child.under_way(), now_ns))
        if not watch.hung:
            child.let_go()
        if child.ended:
            self._old = None
