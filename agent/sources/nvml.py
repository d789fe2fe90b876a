"""The NVML source: keeps the driver's library in a child process and never waits for it.

Frames from the child become observations; the call table shows which calls hang. If the child dies it is
started again with back-off; if it is stuck as a whole (every thread, or its start) a second one is started
beside it, two at most: a process inside a hung driver cannot be killed. No NVML, no permission or no driver
is a source that is down, with GPU readings absent: unknown, never a fault.
"""

import asyncio
import logging
import sys
from pathlib import Path

import msgspec

from agent.sources import boot
from agent.sources.nvml_errors import explain
from agent.sources.nvml_frames import Failed, Frame, Opened, Pushed, Sampled, Unsupported
from agent.sources.nvml_process import NvmlProcess
from agent.sources.nvml_watch import HANG_AFTER_S, Change, HangWatch
from agent.sources.source import Emit
from vocab.clock import Clock
from vocab.observations import DriverCall, GpuIdentity, NodeSeen, SourceState
from wire.backoff import delay_s

log = logging.getLogger(__name__)

LOOK_S = 1.0  # between two looks at the call table
GIVE_UP_S = 30.0  # a child that is stuck for so long gets a second one beside it
REPEAT_S = 60.0  # the inventory is told again
RETRY_MOST_S = 60.0


class NvmlSource:
    """Emits GpuSample, NodeSeen, DriverEvent, DriverCall and SourceState of the source ``nvml``.

    ``library`` None leaves the search to the dynamic linker. The call tables lie in ``run_dir``. Each GPU is read
    every ``period_s``; GPUs that come or go are seen within ``inventory_s``; ``retry_s`` is the first back-off.
    """

    name = "nvml"

    def __init__(
        self,
        node: str,
        library: Path | None,
        run_dir: Path,
        clock: Clock,
        *,
        period_s: float = 1.0,
        hang_after_s: float = HANG_AFTER_S,
        give_up_s: float = GIVE_UP_S,
        look_s: float = LOOK_S,
        inventory_s: float = 10.0,
        retry_s: float = 1.0,
        environment: dict[str, str] | None = None,
    ) -> None:
        self._node = node
        self._library = library
        self._run_dir = run_dir
        self._clock = clock
        self._period_s = period_s
        self._hang_after_s = hang_after_s
        self._give_up_s = give_up_s
        self._look_s = look_s
        self._inventory_s = inventory_s
        self._retry_s = retry_s
        self._environment = environment  # added to the child's
        self._boot_id, self._boot_at = boot.boot_id(), boot.boot_at()
        self._emit: Emit = lambda _: None
        self._opened: Opened | None = None  # the last inventory; kept while NVML is away
        self._driver: str | None = None
        self._failed: str | None = None
        self._unsupported: tuple[str, ...] = ()
        self._said: SourceState | None = None
        self._inventory_at = float("-inf")
        self._stuck_since: float | None = None
        self._live = False  # whether the child at hand has opened NVML
        self._old: tuple[NvmlProcess, HangWatch] | None = None  # stuck, and left alone

    async def run(self, emit: Emit) -> None:
        """Observe until cancelled."""
        self._emit = emit
        attempt = turn = 0
        while True:
            turn += 1
            child = await self._start(turn)
            watch = HangWatch(self._hang_after_s)
            opened_before, self._failed = self._opened, None
            try:
                left_alone = await self._attend(child, watch)
            except asyncio.CancelledError:
                await self._stop_all(child)
                raise
            if left_alone:
                self._old = (child, watch)
                continue
            attempt = attempt + 1 if self._opened is opened_before else 1
            self._report_end(await child.wait())
            await asyncio.sleep(delay_s(attempt, self._node, first_s=self._retry_s, most_s=RETRY_MOST_S))

    async def _start(self, turn: int) -> NvmlProcess:
        table = self._run_dir / f"nvml-calls-{turn % 2}"  # two children at most, each with its own
        arguments = ["--period-s", str(self._period_s), "--inventory-s", str(self._inventory_s)]
        if self._library:
            arguments += ["--library", str(self._library)]
        return await NvmlProcess.start(sys.executable, table, arguments, self._environment)

    async def _stop_all(self, child: NvmlProcess) -> None:
        await child.stop()
        if self._old:
            await self._old[0].stop()

    # one child

    async def _attend(self, child: NvmlProcess, watch: HangWatch) -> bool:
        """Follow a child until it ends (False), or is so stuck that it is left alone (True)."""
        self._stuck_since, self._live = None, False
        reading = asyncio.create_task(self._read(child))
        try:
            while not reading.done():
                await asyncio.wait({reading}, timeout=self._look_s)
                self._look(child, watch)
                if self._old is None and self._stuck_for() >= self._give_up_s:
                    return True
            reading.result()  # a defect of ours in there is not swallowed
            return False
        finally:
            reading.cancel()

    async def _read(self, child: NvmlProcess) -> None:
        while (frame := await child.frame()) is not None:
            self._take(frame)

    def _take(self, frame: Frame) -> None:
        now = self._clock.now()
        match frame:
            case Sampled(sample):
                self._emit(msgspec.structs.replace(sample, at=now, node=self._node))
            case Pushed(event):
                self._emit(msgspec.structs.replace(event, at=now, node=self._node))
            case Opened(driver=driver):
                self._opened, self._driver, self._failed, self._live = frame, driver, None, True
                self._say_inventory()
                self._say("up")
            case Unsupported(names=names):
                self._unsupported = tuple(sorted({*self._unsupported, *names}))
            case Failed(error=error):
                self._failed = error

    def _report_end(self, code: int) -> None:
        """The child has gone: NVML could not be opened, or the child was killed or broke."""
        if self._failed is None:
            log.error("the NVML child has ended", extra={"exit_code": code})
        self._driver = None
        self._say_inventory()
        self._say("down", explain(self._failed or "CHILD_DIED"))

    # hangs

    def _look(self, child: NvmlProcess, watch: HangWatch) -> None:
        """Report calls that hang or came back, and what that means for the source."""
        now = self._clock.monotonic()
        self._watch_old(int(now * 1e9))
        self._report(child, watch.look(child.under_way(), int(now * 1e9)))
        stuck = watch.stuck(len(self._opened.gpus) if self._opened and self._live else 0)
        self._stuck_since = (self._stuck_since or now) if stuck else None
        suspect = watch.suspect()
        if suspect:
            error = f"{explain('HUNG')} ({suspect.call} of {suspect.gpu or 'the node'})"
            self._say("degraded" if self._live and not stuck else "down", error)
        elif self._live:
            self._say("up")
        if self._live and now - self._inventory_at >= REPEAT_S:
            self._say_inventory()

    def _report(self, child: NvmlProcess, changes: list[Change]) -> None:
        for change in changes:
            call, words = change.call, {"gpu": change.call.gpu, "call": change.call.call, "pid": child.pid}
            log.warning("driver call hangs" if change.state == "started" else "driver call came back", extra=words)
            at = self._clock.now()
            self._emit(
                DriverCall(at=at, node=self._node, gpu=call.gpu, call=call.call, state=change.state, pid=child.pid)
            )

    def _stuck_for(self) -> float:
        return 0.0 if self._stuck_since is None else self._clock.monotonic() - self._stuck_since

    def _watch_old(self, now_ns: int) -> None:
        """A child that was left alone ends as soon as the driver lets it."""
        if self._old is None:
            return
        child, watch = self._old
        self._report(child, watch.look({} if child.ended else child.under_way(), now_ns))
        if not watch.hung:
            child.let_go()
        if child.ended:
            self._old = None

    # reports

    def _say(self, state: str, error: str | None = None) -> None:
        """Report the source's state if it is news."""
        unsupported = self._unsupported if state != "down" else ()
        said = SourceState(at=0.0, node=self._node, source="nvml", state=state, error=error, unsupported=unsupported)
        if said != self._said:
            self._said = said
            self._emit(msgspec.structs.replace(said, at=self._clock.now()))

    def _say_inventory(self) -> None:
        """The inventory as last known: a driver that is away has not taken the GPUs out of the node."""
        self._inventory_at = self._clock.monotonic()
        opened = self._opened
        gpus: tuple[GpuIdentity, ...] = opened.gpus if opened else ()
        self._emit(
            NodeSeen(
                at=self._clock.now(),
                node=self._node,
                boot_id=self._boot_id,
                boot_at=self._boot_at,
                driver=self._driver,
                library=opened.library if opened else None,
                period_s=self._period_s,
                gpus=gpus,
                expected_gpus=opened.count if opened else None,
            )
        )
