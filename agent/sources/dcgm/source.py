"""The DCGM source: a host engine's readings, health watches and events, beside NVML and never in its place.

NVML owns every reading that it gives. DCGM is asked for exactly those that NVML has not given of any GPU for
half a minute: performance counters that a board's NVML does not have, what our user may not read, everything
while NVML is down. ``complete`` puts them into NVML's own samples, so there is one sample a GPU and nothing is
read twice. Only while NVML gives no sample at all do DCGM's go out as samples of their own.

A host engine that is gone is a source that is down, never a fault of a GPU. Where nobody has asked for DCGM
(``auto``) and none is there, nothing is said; ``sight`` tells a doctor.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from agent.calls import Call
from agent.sources.dcgm.beside import Beside
from agent.sources.dcgm.engine import EMBEDDED, is_local
from agent.sources.dcgm.names import explain
from agent.sources.dcgm.sight import AUTO, DcgmSettings, look
from agent.sources.frames import Frame, Limited, Observed, Opened
from agent.sources.hang_watch import Change, HangWatch
from agent.sources.keeper import GIVE_UP_S, LOOK_S, Keeper, Limits
from agent.sources.source import Emit
from vocab.clock import Clock
from vocab.errors import InputError, Refused
from vocab.observations import AnyObservation, DriverCall, GpuSample, NodeSeen, SourceState

CHILD = "agent.sources.dcgm.child"
HANG_AFTER_S = 10.0  # a bulk read takes milliseconds; the engine waits for the driver as we would
NEED_AFTER_S = 30.0  # NVML reads every reading that it has within 10 s
ALONE_AFTER_S = 15.0  # without any sample of NVML's


class DcgmSource:
    """Emits GpuSample, Check, DriverEvent and SourceState of the source ``dcgm``; see NvmlSource for the times."""

    name = "dcgm"

    def __init__(
        self,
        node: str,
        settings: DcgmSettings,
        run_dir: Path,
        clock: Clock,
        *,
        period_s: float = 1.0,
        health_s: float = 30.0,
        inventory_s: float = 10.0,
        need_after_s: float = NEED_AFTER_S,
        alone_after_s: float = ALONE_AFTER_S,
        hang_after_s: float = HANG_AFTER_S,
        give_up_s: float = GIVE_UP_S,
        look_s: float = LOOK_S,
        retry_s: float = 1.0,
        environment: dict[str, str] | None = None,
    ) -> None:
        self._node = node
        self._settings = settings
        self._clock = clock
        self._period_s = period_s
        self._health_s = health_s
        self._inventory_s = inventory_s
        self._need_after_s = need_after_s
        limits = Limits(hang_after_s=hang_after_s, give_up_s=give_up_s, look_s=look_s, retry_s=retry_s)
        self.keeper = Keeper(self, self.name, CHILD, run_dir, clock, limits, environment)
        self._emit: Emit = lambda _: None
        self._bindings: Path | None = None
        self._opened: Opened | None = None
        self._limited = Limited(())
        self._said: SourceState | None = None
        self._told: frozenset[str] | None = None  # the needs that the child at hand was told
        self._told_at = 0.0
        self._beside = Beside(need_after_s, alone_after_s, clock.monotonic())

    async def run(self, emit: Emit) -> None:
        """Observe until cancelled."""
        self._emit = emit
        await self.keeper.run(self._node)

    @property
    def embedded(self) -> bool:
        """Whether the engine is our own child, which has the driver open; else the child only speaks to one."""
        return self._settings.address == EMBEDDED

    # beside NVML

    def complete(self, observation: AnyObservation) -> AnyObservation:
        """An observation of NVML's with what it lacks and DCGM has."""
        match observation:
            case GpuSample():
                return self._beside.complete(observation, self._clock.monotonic())
            case NodeSeen(gpus=()) if self._opened is not None and self.keeper.live:
                opened = self._opened
                return msgspec.structs.replace(
                    observation, driver=opened.driver, gpus=opened.gpus, expected_gpus=opened.count
                )
        return observation

    def needs(self) -> frozenset[str]:
        """The readings that NVML does not give."""
        return self._beside.needs(self._clock.monotonic())

    def drill(self, gpu: str, field: int, value: float) -> None:
        """Let the engine tell of this value of a field, on purpose. Raises Refused if no engine is there."""
        if not self.keeper.live or self._opened is None:
            raise Refused("no DCGM host engine answers here; see `corral doctor`")
        if gpu not in {one.uuid for one in self._opened.gpus}:
            raise InputError(f"gpu: the host engine knows no {gpu}; see `corral status`")
        told = msgspec.json.encode({"gpu": gpu, "field": field, "value": value}).decode()
        self.keeper.tell(f"drill {told}")

    # what the keeper asks and tells

    async def ready(self) -> bool:
        """Whether bindings and an engine are there."""
        sight = await look(self._settings)
        self._bindings = sight.bindings
        if sight.error:
            self.ended(sight.error)
        return sight.error is None

    def arguments(self) -> Sequence[str]:
        """Of the child."""
        return (
            *("--bindings", str(self._bindings), "--address", self._settings.address),
            *("--profiling", self._settings.profiling),
            *("--period-s", str(self._period_s), "--health-s", str(self._health_s)),
            *("--inventory-s", str(self._inventory_s)),
        )

    def threads(self) -> int:
        """One thread reads all GPUs."""
        return 0

    def take(self, frame: Frame) -> None:
        """A frame becomes an observation, or part of one of NVML's."""
        match frame:
            case Observed(observation):
                stamped = msgspec.structs.replace(observation, at=self._clock.now(), node=self._node)
                if not isinstance(stamped, GpuSample) or self._beside.keep(stamped, self._clock.monotonic()):
                    self._emit(stamped)
            case Opened():
                self._opened, self._limited, self._told = frame, Limited(()), None
                self._beside.opened(self._clock.monotonic())
                self._say("up")
            case Limited():
                self._limited = frame
                self._say_working()

    def hung(self, pid: int, changes: Sequence[Change]) -> None:
        """Calls that hang. Embedded they are calls into the driver; else it is the engine that does not answer."""
        if not self.embedded:
            return
        for change in changes:
            at, call = self._clock.now(), change.call.call
            self._emit(DriverCall(at=at, node=self._node, gpu=None, call=call, state=change.state, pid=pid))

    def stands(self, pid: int, calls: Sequence[Call], where: str) -> None:
        """What was kept of the child; of a call to an engine that does not answer it tells nothing of the driver."""
        for call in calls if self.embedded else ():
            self._emit(DriverCall(at=self._clock.now(), node=self._node, call=call.call, pid=pid, stacks=where))

    def looked(self, keeper: Keeper, watch: HangWatch, *, stuck: bool) -> None:
        """Say the state, and tell the child what is needed."""
        suspect = watch.suspect()
        if suspect:
            self._say("degraded" if keeper.live and not stuck else "down", f"{explain('HUNG')} ({suspect.call})")
        elif keeper.live:
            self._say_working()
            self._tell_needs()

    def _tell_needs(self) -> None:
        """Not with each reading that NVML ceases to give: they cease within seconds of one another."""
        now, needs = self._clock.monotonic(), self.needs()
        if needs == self._told or (self._told is not None and now - self._told_at < self._need_after_s / 3):
            return
        self._told, self._told_at = needs, now
        self.keeper.tell(f"need {','.join(sorted(needs))}")

    def ended(self, error: str) -> None:
        """There is no DCGM, or no longer. Where nobody asked for it and it never was there, that is nothing to say."""
        self._beside.forget(self._clock.monotonic())
        if self._settings.engine != AUTO or self._said is not None:
            self._say("down", explain(error))

    # reports

    def _say_working(self) -> None:
        limited = self._limited
        if limited.error is None and not limited.unsupported:
            self._say("up")
            return
        version = f" (DCGM {self._opened.library})" if self._opened and limited.error is None else ""
        self._say("degraded", explain(limited.error or "UNKNOWN_FIELD") + version, limited.unsupported)

    def _say(self, state: str, error: str | None = None, unsupported: Iterable[str] = ()) -> None:
        """Report the source's state if it is news."""
        said = SourceState(
            at=0.0,
            node=self._node,
            source=self.name,
            state=state,
            remote=not is_local(self._settings.address),
            error=error,
            unsupported=tuple(unsupported),
        )
        if said != self._said:
            self._said = said
            self._emit(msgspec.structs.replace(said, at=self._clock.now()))
