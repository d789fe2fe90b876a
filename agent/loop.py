"""The agent's loop: every observation goes the whole way in one call, and time goes by.

    take:  observation -> judge -> fence -> record -> tell
    run:   what has become due -> the same way; replicas are looked at; the watchdog is told

A source calls ``take`` itself, so nothing queues between a kernel record and its fence. Nothing here waits
for a driver, a replica or the controller. What one input breaks is logged and counted; the next goes on.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import perf_counter
from typing import ParamSpec

from agent.export import Export
from agent.fence import Step
from agent.judge import Judge
from agent.judge.judge import SET_HEALTHY
from agent.latest import Latest
from agent.page import Page
from agent.probes.profiling import CODE as PROFILING_BROKEN
from agent.probes.sane import clean
from agent.ring import Ring
from agent.scribe import Scribe
from agent.steady import Steady
from agent.warden import Replicas, Warden
from vocab.clock import Clock
from vocab.events import Event, Severity
from vocab.messages import Desired, EventItem, Item, NodeFacts, ReplicaStatus
from vocab.observations import AnyObservation, GpuSample, KernelRecord, NodeSeen, Operator, ReplicaSeen, SourceState
from wire.notify import notify

log = logging.getLogger(__name__)
P = ParamSpec("P")

LOOK_S = 1.0  # how often replicas, the PAUSE file and the watchdog get a look
EARLY_S = 3.0  # how long kernel records wait for the inventory that says whose address is whose
MOST_EARLY = 10_000  # and how many: a ring of the kernel holds fewer, unless it floods
SAVE_S = 5.0  # how old the stored read position may get while nothing else is stored


class Loop:
    """One node's agent, without its sources, server and link. All methods belong to one thread."""

    def __init__(
        self,
        *,
        node: str,
        boot_id: str,
        clock: Clock,
        steady: Steady,
        judge: Judge,
        warden: Warden,
        scribe: Scribe,
        replicas: Replicas,
        latest: Latest,
        page: Page,
        export: Export,
        ring: Ring | None = None,
        observed: Callable[[], tuple[ReplicaStatus, ...]] = tuple,
        has_looked: Callable[[], bool] = lambda: True,
    ) -> None:
        self.node = node
        self._boot_id = boot_id
        self._clock = clock
        self.now = steady.now
        self._judge = judge
        self._warden = warden
        self._scribe = scribe
        self._replicas = replicas
        self._observed, self._has_looked = observed, has_looked  # replicas that are not ours
        self._statuses = replicas.statuses()
        self._latest = latest
        self._page = page
        self._export = export
        self._ring = ring or Ring(Path(), 0, node)
        self._early: list[AnyObservation] | None = []
        self._early_until = self.now() + EARLY_S
        self._saved_at = self.now()
        self._saved_position = judge.position
        self._healthy: dict[str, float] = {}  # what the last Desired says that people called healthy
        self._due = asyncio.Event()
        self.profiling_broke = asyncio.Event()
        self.wake_uplink: Callable[[], None] = lambda: None

    # -- the loop ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Let time pass until cancelled."""
        look_at = self.now()
        while True:
            if self.now() >= look_at:
                self._guarded("look", self.look)
                look_at = self.now() + LOOK_S
            self._guarded("tick", self.tick)
            await self._rest(min(look_at, self.next_deadline() or look_at))

    async def _rest(self, until: float) -> None:
        self._due.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.001, until - self.now())):
                await self._due.wait()

    def next_deadline(self) -> float | None:
        """When ``tick`` has something to do, or None."""
        deadlines = (self._judge.next_deadline(), self._warden.fences.next_deadline())
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def take(self, observation: AnyObservation) -> None:
        """Judge one observation and do what follows from it."""
        began = perf_counter()
        self._guarded("judge", self._take, observation)
        self._export.took(observation, perf_counter() - began)
        if isinstance(observation, GpuSample | ReplicaSeen):
            return  # what these bring about is due in seconds: the next look is soon enough
        deadline = self._judge.next_deadline()
        if deadline is not None and deadline <= self.now() + LOOK_S:
            self._due.set()

    def tick(self) -> None:
        """Do what has become due."""
        now = self.now()
        if self._early is not None and now >= self._early_until:
            self._release()
        self._settle(self._judge.tick(now), self._warden.tick(now), now)
        if now - self._saved_at >= SAVE_S and self._judge.position != self._saved_position:
            self._record([], now)

    def look(self) -> None:
        """Look at replicas and the PAUSE file, and tell the service manager that the loop lives."""
        if self._warden.look_for_pause():
            self.wake_uplink()
        self._look_at_replicas()
        self._warden.converge()
        notify("WATCHDOG=1")

    def _look_at_replicas(self) -> None:
        """What the judge and the recording see is what the controller is told: both are of one moment."""
        for seen in self._replicas.observations(self._clock.now()):
            self.take(seen)
        before, self._statuses = self._statuses, self._replicas.statuses()
        if list(map(_state, before)) != list(map(_state, self._statuses)):
            self.wake_uplink()

    def apply(self, desired: Desired) -> None:
        """A new Desired is on disk: take it."""
        now = self.now()
        self._look_anew(desired, now)
        answers = self._warden.apply(desired)
        self._keep(answers)
        if answers:
            self._record(answers, now)
        self._settle([], self._warden.tick(now), now)
        self._warden.converge()
        self._look_at_replicas()

    def _look_anew(self, desired: Desired, now: float) -> None:
        """Look as if for the first time at what a person has called healthy since the last Desired."""
        marks, self._healthy = self._healthy, desired.healthy
        for gpu in [gpu for gpu, at in desired.healthy.items() if at > marks.get(gpu, 0.0)]:
            self._judge.observe(Operator(at=now, node=self.node, do=SET_HEALTHY, gpu=gpu), now)

    def answer(self, item: Item) -> None:
        """What came of an order that takes its time."""
        self._keep([item])
        self._record([item], self.now())

    def _guarded(self, part: str, act: Callable[P, None], *arguments: P.args, **named: P.kwargs) -> None:
        try:
            act(*arguments, **named)
        except Exception:  # the outermost edge of the loop: one bad input must not blind the node
            log.exception("an input could not be handled", extra={"part": part})
            self._export.failed(part)

    # -- the way of one observation ---------------------------------------------------------------------

    def _take(self, observation: AnyObservation) -> None:
        if self._early is not None and isinstance(observation, KernelRecord):
            self._early.append(observation)  # the inventory says whose address is whose
            if len(self._early) >= MOST_EARLY:
                self._release()
            return
        if isinstance(observation, GpuSample):
            observation = clean(observation)  # what cannot be is not shown either
            self._export.rejected(observation)
        now = self.now()
        items = self._judge.observe(observation, now, cleaned=True)
        self._show(observation, now)
        self._settle(items, self._witness(observation, now), now)
        self._ring.add(observation)  # after the fence that it led to, which stands before it
        if isinstance(observation, NodeSeen) or _unreadable(observation):
            self._release()

    def _settle(self, items: Sequence[Item], steps: Sequence[Step], now: float) -> None:
        """Fences first, for they count in milliseconds; then the record of it all, in the order of the acts."""
        acts = self._warden.judge(items, steps, now)
        everything = [*acts, *items]
        self._keep(acts)
        if everything:
            self._record(everything, now)
            self._tell(everything)

    def _witness(self, observation: AnyObservation, now: float) -> list[Step]:
        if not isinstance(observation, GpuSample):
            return []
        gpu = self._judge.scene.sampled(observation)
        fences = self._warden.fences
        if gpu is None or fences.is_calm(gpu, observation):
            return []
        return fences.sampled(gpu, observation, self._warden.bounds, now)

    def _keep(self, acts: Iterable[Item]) -> None:
        """Put what the agent did by itself, or answered, into the ring."""
        for act in acts:
            self._ring.acted(act)

    def _record(self, items: Sequence[Item], now: float) -> None:
        self._scribe.add(items)
        self._saved_at, self._saved_position = now, self._judge.position

    def _tell(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, EventItem):
                self._latest.judged(item.event)
                self._export.judged(item.event)
                _log(item.event)
                if item.event.code == PROFILING_BROKEN:
                    self.profiling_broke.set()

    def _show(self, observation: AnyObservation, now: float) -> None:
        if isinstance(observation, GpuSample):
            observation = self._judge.believed(observation)
        self._latest.take(observation, self._judge.scene, now)
        match observation:
            case GpuSample():
                gpu = self._judge.scene.sampled(observation)
                if gpu is not None and self._page.take(gpu, observation):
                    self.wake_uplink()
            case NodeSeen():
                self._page.keep(frozenset(gpu.uuid for gpu in observation.gpus))
                self.wake_uplink()
            case SourceState():
                if observation.state != "up":
                    told = {"source": observation.source, "error": observation.error}
                    log.warning("source is %s", observation.state, extra=told)
                self._export.set("corral_agent_source_up", observation.state == "up", source=observation.source)
                self.wake_uplink()

    # -- before the inventory is known ------------------------------------------------------------------

    def _release(self) -> None:
        """Judge the kernel records that waited; from now on none waits."""
        early, self._early = self._early or [], None
        for observation in early:
            self.take(observation)

    # -- what the uplink asks ---------------------------------------------------------------------------

    def facts(self) -> NodeFacts | None:
        """What the node is."""
        return self._latest.facts(self.node, self._judge.scene.boot_id or self._boot_id)

    def replicas(self) -> tuple[ReplicaStatus, ...]:
        """Its replicas, as of the last look."""
        return tuple(map(self._judge.replicas.regard, (*self._statuses, *self._observed())))

    def has_looked(self) -> bool:
        """Whether that list is whole: what is not ours is looked for first."""
        return self._has_looked()

    def paused(self) -> bool:
        """Whether the PAUSE file stands."""
        return self._warden.paused_here


def _state(status: ReplicaStatus) -> tuple[object, ...]:
    """What of a replica is told at once when it changes; the rest goes with the next report."""
    return status.replica, status.phase, status.ready, status.admitting, status.stepping, status.token


def _unreadable(observation: AnyObservation) -> bool:
    return isinstance(observation, SourceState) and observation.source == "nvml" and observation.state == "down"


def _log(event: Event) -> None:
    bad = event.severity.rank >= Severity.ERROR.rank and not event.injected
    told = {
        "event_id": event.id,
        "rev": event.rev,
        "gpu": event.gpu,
        "count": event.count,
        "severity": event.severity.value,
    }
    log.log(logging.WARNING if bad else logging.INFO, "event %s: %s", event.code, event.text, extra=told)
