"""What the agent of a recorded node would have told its controller, from what the recording shows of it."""

from collections.abc import Iterator

import msgspec

from agent.judge import Judge
from agent.kernel.parser import Parser, of_interest
from controller.core.stimuli import Arrived, NodeReported, Replicas, Sampled, Stimulus
from vocab.catalogue.boards import reset_group
from vocab.messages import GpuStatus, NodeFacts, ReplicaStatus
from vocab.observations import AnyObservation, GpuSample, KernelRecord, Member, NodeSeen, ReplicaSeen
from vocab.states import Level

STILL_S = 5.0  # work without a step for that long: it no longer steps, as its agent would say


class Pulse(msgspec.Struct):
    """A replica's step counter, and when it last moved or had nothing to do."""

    step: int | None = None
    moved_at: float = 0.0


class Watched:
    """One node of a recording. Its inventory, its replicas and its judge."""

    def __init__(self, name: str, level: Level) -> None:
        self.name = name
        self.level = level
        self.judge = Judge(name)
        self.seen: NodeSeen | None = None
        self.statuses: dict[str, ReplicaStatus] = {}
        self._pulses: dict[str, Pulse] = {}
        self._parser = Parser()  # counts what claims to be an Xid and cannot be parsed

    @property
    def unparsed(self) -> int:
        """Kernel lines that look like an Xid and could not be parsed."""
        return self._parser.unparsed

    def told(self, observation: AnyObservation) -> Iterator[Stimulus]:
        """What follows from one observation, in the order of a batch."""
        if isinstance(observation, NodeSeen):
            self.seen = observation
            yield NodeReported(facts=self.facts(observation))
        if isinstance(observation, KernelRecord) and observation.line and of_interest(observation.line):
            for _ in self._parser.feed(observation.line):
                pass
        for item in self.judge.observe(observation, observation.at):
            yield Arrived(node=self.name, item=item)
        if isinstance(observation, GpuSample):
            yield from self._sample(observation)
        if isinstance(observation, ReplicaSeen):
            self.statuses[observation.replica] = self._status(observation)
            yield self.replicas(whole=False)

    def due(self, now: float) -> Iterator[Stimulus]:
        """What the judge says because time has passed."""
        for item in self.judge.tick(now):
            yield Arrived(node=self.name, item=item)

    def close(self, now: float) -> Iterator[Stimulus]:
        """What the judge still has to say at the end of the recording."""
        for item in self.judge.close(now):
            yield Arrived(node=self.name, item=item)

    def forget(self) -> None:
        """The agent was restarted and its disk is empty: a new judge, which sees the inventory first."""
        self.judge = Judge(self.name)
        if self.seen is not None:
            self.judge.observe(self.seen, self.seen.at)

    def greeting(self) -> Iterator[Stimulus]:
        """The first batch of a new connection."""
        if self.seen is not None:
            yield NodeReported(facts=self.facts(self.seen))
        yield self.replicas(whole=False)

    def facts(self, seen: NodeSeen) -> NodeFacts:
        """The inventory. Without a promised period nothing is ever too old: ``period_s`` 0."""
        board = seen.gpus[0].name or "" if seen.gpus else ""
        return NodeFacts(
            node=self.name,
            boot_id=seen.boot_id,
            boot_at=seen.boot_at,
            virtual=seen.virtual,
            level=self.level,
            driver=seen.driver,
            gpus=seen.gpus,
            reset_group=reset_group(board, [gpu.uuid for gpu in seen.gpus]),
            period_s=seen.period_s or 0.0,
        )

    def replicas(self, *, whole: bool) -> Replicas:
        """The list of the node; ``whole``: no more of it are to be expected."""
        return Replicas(node=self.name, statuses=tuple(self.statuses.values()), whole=whole)

    def _sample(self, sample: GpuSample) -> Iterator[Stimulus]:
        gpus = self.seen.gpus if self.seen else ()
        known = next(
            (g.uuid for g in gpus if sample.gpu == g.uuid or sample.index == g.index or sample.pci == g.pci), sample.gpu
        )
        if known is not None:
            status = GpuStatus(gpu=known, at=sample.at, readings=sample.readings, error=sample.error)
            yield Sampled(node=self.name, gpus=(status,))

    def _status(self, seen: ReplicaSeen) -> ReplicaStatus:
        """The replica as of now; what is not known this time is as before."""
        before = self.statuses.get(seen.replica)
        phase = _phase(seen, before)
        known = seen.ready if seen.ready is not None else before.ready if before else phase == "ready"
        ready = known and phase == "ready"
        running, waiting = seen.running or 0, seen.waiting or 0
        return ReplicaStatus(
            replica=seen.replica,
            deployment=seen.deployment or (before.deployment if before else ""),
            members=_members(seen, self.name) or (before.members if before else ()),
            phase=phase,
            ready=ready,
            admitting=ready,
            stepping=phase != "stopped" and self._steps(seen, running + waiting),
            running=running,
            waiting=waiting,
            open_requests=running + waiting if seen.open_requests is None else seen.open_requests,
            exit=seen.exit,
        )

    def _steps(self, seen: ReplicaSeen, work: int) -> bool:
        pulse = self._pulses.setdefault(seen.replica, Pulse(moved_at=seen.at))
        if work == 0 or (seen.step is not None and seen.step != pulse.step):
            pulse.moved_at = seen.at
        pulse.step = pulse.step if seen.step is None else seen.step
        return seen.at - pulse.moved_at <= STILL_S


def _phase(seen: ReplicaSeen, before: ReplicaStatus | None) -> str:
    if seen.exit is not None:
        return "stopped"
    if seen.phase is not None:
        return seen.phase
    if before is not None and before.phase in {"draining", "starting"} and not seen.ready:
        return before.phase
    return "ready" if seen.ready or (before is not None and before.phase == "ready") else "starting"


def _members(seen: ReplicaSeen, node: str) -> tuple[Member, ...]:
    if seen.members:
        return seen.members
    return tuple(Member(node=node, gpu=gpu, rank=rank) for rank, gpu in enumerate(seen.gpus))
