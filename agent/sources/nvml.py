"""The NVML source: keeps the driver's library in a child process and never waits for it.

Frames from the child become observations; the call table shows which calls hang. No NVML, no permission or no
driver is a source that is down, with GPU readings absent: unknown, never a fault.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from agent.calls import Call
from agent.sources import boot
from agent.sources.frames import Frame, Limited, Observed, Opened, Sampled
from agent.sources.hang_watch import HANG_AFTER_S, Change, HangWatch
from agent.sources.health import Health
from agent.sources.keeper import GIVE_UP_S, LOOK_S, Keeper, Limits
from agent.sources.nvml_errors import explain
from agent.sources.source import Emit
from vocab.clock import Clock
from vocab.observations import (
    AnyObservation,
    Check,
    DriverCall,
    DriverEvent,
    GpuIdentity,
    GpuSample,
    NodeSeen,
    SourceState,
)

REPEAT_S = 60.0  # the inventory is told again
EARLY_S = 5.0  # ... while the node's start is not over
CHILD = "agent.sources.nvml_child"


def _as_it_is(observation: AnyObservation) -> AnyObservation:
    return observation


class NvmlSource:
    """Emits GpuSample, NodeSeen, DriverEvent, DriverCall and SourceState of the source ``nvml``.

    ``library`` None leaves the search to the dynamic linker. The call tables lie in ``run_dir``. Each GPU is read
    every ``period_s``; GPUs that come or go are seen within ``inventory_s``; ``retry_s`` is the first back-off.
    ``complete`` may add to a sample or an inventory what NVML does not give.
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
        complete: Callable[[AnyObservation], AnyObservation] = _as_it_is,
    ) -> None:
        self._node = node
        self._library = library
        self._clock = clock
        self._period_s = period_s
        self._inventory_s = inventory_s
        self._complete = complete
        limits = Limits(hang_after_s=hang_after_s, give_up_s=give_up_s, look_s=look_s, retry_s=retry_s)
        self._keeper = Keeper(self, self.name, CHILD, run_dir, clock, limits, environment)
        self._boot_id, self._boot_at = boot.boot_id(), boot.boot_at()
        self._emit: Emit = lambda _: None
        self._opened: Opened | None = None  # the last inventory; kept while NVML is away
        self._driver: str | None = None
        self._unsupported: tuple[str, ...] = ()
        self._said: SourceState | None = None
        self._inventory_at = float("-inf")
        self._was_booting = False

    async def run(self, emit: Emit) -> None:
        """Observe until cancelled."""
        self._emit = emit
        await self._keeper.run(self._node)

    @property
    def keeper(self) -> Keeper:
        """Who keeps the child; sent to rest while the driver must be shut."""
        return self._keeper

    @property
    def health(self) -> Health:
        """Of the child."""
        return self._keeper.health

    # what the keeper asks and tells

    async def ready(self) -> bool:
        """Always: only the library itself knows."""
        return True

    def arguments(self) -> Sequence[str]:
        """Of the child."""
        library = ("--library", str(self._library)) if self._library else ()
        return ("--period-s", str(self._period_s), "--inventory-s", str(self._inventory_s), *library)

    def threads(self) -> int:
        """One a GPU."""
        return len(self._opened.gpus) if self._opened else 0

    def take(self, frame: Frame) -> None:
        """A frame becomes an observation."""
        match frame:
            case Sampled(samples, read_s):
                self._keeper.health.read_s = read_s
                for sample in samples:
                    self._stamp(sample)
            case Observed(observation):
                self._stamp(observation)
            case Opened(driver=driver):
                self._opened, self._driver = frame, driver
                self._say_inventory()
                self._say("up")
            case Limited(unsupported=names):
                self._unsupported = tuple(sorted({*self._unsupported, *names}))

    def _stamp(self, observation: GpuSample | DriverEvent | Check) -> None:
        stamped = msgspec.structs.replace(observation, at=self._clock.now(), node=self._node)
        self._emit(self._complete(stamped))

    def hung(self, pid: int, changes: Sequence[Change]) -> None:
        """Calls that hang, or came back after all."""
        for change in changes:
            call, at = change.call, self._clock.now()
            self._emit(DriverCall(at=at, node=self._node, gpu=call.gpu, call=call.call, state=change.state, pid=pid))

    def stands(self, pid: int, calls: Sequence[Call], where: str) -> None:
        """What was kept of the child belongs to each of its calls."""
        for call in calls:
            at = self._clock.now()
            self._emit(DriverCall(at=at, node=self._node, gpu=call.gpu, call=call.call, pid=pid, stacks=where))

    def looked(self, keeper: Keeper, watch: HangWatch, *, stuck: bool) -> None:
        """What hangs decides the state of the source."""
        suspect = watch.suspect()
        if suspect:
            error = f"{explain('HUNG')} ({suspect.call} of {suspect.gpu or 'the node'})"
            self._say("degraded" if keeper.live and not stuck else "down", error)
        elif stuck:
            self._say("down", explain("SILENT"))
        elif keeper.live:
            self._say("up")
        if keeper.live and self._clock.monotonic() - self._inventory_at >= (EARLY_S if self._was_booting else REPEAT_S):
            self._say_inventory()

    def ended(self, error: str) -> None:
        """NVML could not be opened, or the child was killed or broke."""
        self._driver, self._unsupported = None, ()  # the next child learns anew
        self._say_inventory()
        self._say("down", explain(error))

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
        seen = NodeSeen(
            at=self._clock.now(),
            node=self._node,
            boot_id=self._boot_id,
            boot_at=self._boot_at,
            driver=self._driver,
            library=opened.library if opened else None,
            cuda=opened.cuda if opened else None,
            period_s=self._period_s,
            gpus=gpus,
            expected_gpus=opened.count if opened else None,
        )
        told = self._complete(seen)
        self._was_booting = isinstance(told, NodeSeen) and told.booting
        self._emit(told)
