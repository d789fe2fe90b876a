"""What the agent of a recorded node would have told its controller, from what the recording shows of it."""

from collections.abc import Iterator

from msgspec.structs import replace

from agent.judge import Judge
from agent.kernel.parser import Parser, of_interest
from controller.core.fleet.stimuli import Arrived, NodeReported, Replicas, Sampled, Stimulus
from corral.replay.status import Statuses
from vocab.catalogue.boards import reset_group
from vocab.messages import GpuStatus, NodeFacts
from vocab.observations import (
    ActionSeen,
    AnyObservation,
    ClockStep,
    GpuSample,
    KernelRecord,
    LogLine,
    NodeSeen,
    ProcessSeen,
    ReplicaSeen,
    Restart,
)
from vocab.states import ActionKind, Level

DONE = "done"


class Watched:
    """One node of a recording. Its inventory, its replicas and its judge."""

    def __init__(self, name: str, level: Level) -> None:
        self.name = name
        self.level = level
        self.judge = Judge(name)
        self.seen: NodeSeen | None = None
        self.statuses = Statuses(name)
        self._remembers_since: float | None = None  # if it has lost its disk
        self.pauses: list[tuple[float, float]] | None = None  # when the node stood still; None: not asked yet
        self._parser = Parser()  # counts what claims to be an Xid and cannot be parsed
        self._places: dict[str | int, str] = {}  # address or index -> GPU

    @property
    def unparsed(self) -> int:
        """Kernel lines that look like an Xid and could not be parsed."""
        return self._parser.unparsed

    # -- time -------------------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """When its judge has something to do, or it wakes from a pause."""
        due = self.judge.next_deadline()
        wakes = self.pauses[0][1] if self.pauses else None
        return due if wakes is None else wakes if due is None else min(due, wakes)

    def frozen_until(self, now: float) -> float | None:
        """When the node goes on, if it stands still now."""
        return next((end for start, end in self.pauses or () if start <= now < end), None)

    def due(self, now: float) -> Iterator[Stimulus]:
        """What the judge says because time has passed. After a pause the first thing that it learns is how long."""
        yield from self._wake(now)
        for item in self.judge.tick(now):
            yield Arrived(node=self.name, item=item)
        yield from self._regarded()

    def _regarded(self) -> Iterator[Stimulus]:
        """The list of replicas, if the judge now regards them in another way."""
        if self.statuses.are_news(self.judge.replicas):
            yield self.replicas(whole=False)

    def _wake(self, now: float) -> Iterator[Stimulus]:
        while self.pauses and self.pauses[0][1] <= now:
            start, end = self.pauses.pop(0)
            yield from self._judged(ClockStep(at=now, node=self.name, pause_s=end - start), now)

    def close(self, now: float) -> Iterator[Stimulus]:
        """What the judge still has to say at the end of the recording."""
        for item in self.judge.close(now):
            yield Arrived(node=self.name, item=item)

    # -- what is seen -----------------------------------------------------------------------------------

    def told(self, observation: AnyObservation) -> Iterator[Stimulus]:
        """What follows from one observation, in the order of a batch."""
        if self.pauses:
            yield from self._wake(observation.at)
        if isinstance(observation, GpuSample):
            yield from self._judged(observation, observation.at)
            yield from self._sample(observation)
            if observation.processes is not None:
                yield from self._regarded()
            return
        if isinstance(observation, NodeSeen):
            self._see(observation)
            yield NodeReported(facts=self.facts(observation))
        if isinstance(observation, KernelRecord) and observation.line and of_interest(observation.line):
            for _ in self._parser.feed(observation.line):
                pass
        yield from self._judged(observation, observation.at)
        if isinstance(observation, ReplicaSeen):
            self.statuses.take(observation)
            yield self.replicas(whole=False)
        elif isinstance(observation, ProcessSeen | LogLine | NodeSeen):
            yield from self._regarded()

    def _judged(self, observation: AnyObservation, now: float) -> Iterator[Stimulus]:
        for item in self.judge.observe(observation, now):
            yield Arrived(node=self.name, item=item)

    def _see(self, seen: NodeSeen) -> None:
        self.seen = seen
        for gpu in seen.gpus:
            self._places[gpu.index] = self._places[gpu.pci] = gpu.uuid

    def _sample(self, sample: GpuSample) -> Iterator[Stimulus]:
        place = sample.index if sample.pci is None else sample.pci
        gpu = sample.gpu or (None if place is None else self._places.get(place))
        if gpu is not None:
            status = GpuStatus(gpu=gpu, at=sample.at, readings=sample.readings, error=sample.error)
            yield Sampled(node=self.name, gpus=(status,))

    def acted(self, seen: ActionSeen) -> Iterator[Stimulus]:
        """Somebody else did something to the node: a reset ends what a reset ends; the rest shows by itself."""
        if seen.of == ActionKind.RESET_GPU and seen.state == DONE and seen.gpu is not None and self.seen is not None:
            yield from self._judged(replace(self.seen, at=seen.at, reset=(seen.gpu,)), seen.at)

    # -- restarts and the first words of a connection ---------------------------------------------------

    def restart(self, restart: Restart) -> None:
        """The agent was restarted: a new judge, from what is on its disk; without one it sees the inventory first."""
        if restart.kept:
            self.judge = Judge.restore(self.judge.snapshot())
            self.judge.observe(restart, restart.at)  # the driver calls that it waited for ended with it
            return
        self.judge, self._remembers_since = Judge(self.name), restart.at
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
            booting=seen.booting,
            virtual=seen.virtual,
            level=self.level,
            driver=seen.driver,
            gpus=seen.gpus,
            reset_group=reset_group(board, [gpu.uuid for gpu in seen.gpus]),
            passed_on=tuple(device.pci for device in (seen.pci_devices or ()) if device.is_passed_on),
            period_s=seen.period_s or 0.0,
            remembers_since=self._remembers_since,
        )

    def replicas(self, *, whole: bool) -> Replicas:
        """The list of the node; ``whole``: no more of it are to be expected."""
        return Replicas(node=self.name, statuses=self.statuses.all(self.judge.replicas), whole=whole)
