"""Lost: the driver no longer reaches one GPU while it reaches others.

GPU_IS_LOST says so by itself. UNKNOWN says it only of a GPU whose handle cannot be had, or that fails twice in a row
or for a while, and only while another GPU of the node is read well: if nobody can be read, it is the driver or our
way to it, and every GPU is merely unknown.
"""

from collections.abc import Iterator, Sequence

import msgspec

from agent.probes.figures import source_of
from agent.probes.probe import Clear, Finding, Verdict
from agent.probes.scene import Scene
from vocab.events import Evidence, Flag, rfc3339
from vocab.observations import AnyObservation, DriverCall, GpuSample

CODE = "gpu_lost"
GONE = "GPU_IS_LOST"  # NVML 15: fell off the bus or its driver cannot reach it
DOUBTFUL = frozenset({"UNKNOWN", "GPU_NOT_FOUND"})  # NVML 999, 28: a dying GPU, or a driver in trouble
NEEDED = 2  # the vendor's tools call one UNKNOWN nothing and two a fault
PATIENCE_S = 15.0  # without a good read; a read that was merely unlucky is repeated within a period
PEER_S = 120.0  # another GPU that was read this recently proves that the driver works


class Failing(msgspec.Struct):
    """Reads of one GPU that fail without saying why."""

    sample: GpuSample
    since: float
    due: float | None
    count: int = 0


class LostProbe(msgspec.Struct):
    """Remembers which GPUs are lost, which are in doubt, and when each was last read well."""

    lost: set[str] = set()
    failing: dict[str, Failing] = {}
    good: dict[str, float] = {}
    turn: int = 0

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take a sample or a failed call in."""
        match observation:
            case GpuSample():
                return list(self._sampled(observation, scene, now))
            case DriverCall(gpu=gpu, error=error) if error == GONE and gpu is not None and gpu not in self.lost:
                sample = GpuSample(at=observation.at, node=observation.node, gpu=gpu, error=GONE)
                return (self._lose(sample, gpu, scene),)
        return ()

    def _sampled(self, sample: GpuSample, scene: Scene, now: float) -> Iterator[Verdict]:
        gpu = scene.sampled(sample)
        gone = sample.error == GONE or GONE in sample.errors.values()
        if gpu is None:
            if gone and sample.pci is not None and sample.pci not in self.lost:
                yield self._lose(sample, None, scene)
            return
        if gone:
            if gpu not in self.lost:
                yield self._lose(sample, gpu, scene)
        elif sample.error in DOUBTFUL and gpu not in self.lost:
            failing = self.failing.setdefault(gpu, Failing(sample, now, now + PATIENCE_S))
            failing.count, failing.sample = failing.count + 1, sample
        elif sample.error is None and sample.readings is not None:
            self.good[gpu] = now
            self.failing.pop(gpu, None)
            if gpu in self.lost:
                self.lost.discard(gpu)
                scene.absent.discard(gpu)
                yield Clear(code=CODE, at=sample.at, gpu=gpu)
        if self.failing:
            yield from self._proven(scene, now)

    def _proven(self, scene: Scene, now: float) -> Iterator[Finding]:
        """The GPUs in doubt that are lost beyond it."""
        for gpu, failing in list(self.failing.items()):
            if not self._is_alone(gpu, now):
                continue
            no_handle = failing.sample.gpu is None  # named by index or address: its handle could not be had
            if no_handle or failing.count >= NEEDED or now >= failing.since + PATIENCE_S:
                yield self._lose(failing.sample, gpu, scene)

    def _is_alone(self, gpu: str, now: float) -> bool:
        """Whether others are read well meanwhile."""
        return any(now - at <= PEER_S for other, at in self.good.items() if other != gpu and other not in self.failing)

    def _lose(self, sample: GpuSample, gpu: str | None, scene: Scene) -> Finding:
        self.lost.add(gpu or sample.pci or "")
        if gpu is not None:
            scene.absent.add(gpu)
            self.failing.pop(gpu, None)
        self.turn += 1
        stamp, error = rfc3339(sample.at), sample.error or GONE
        return Finding(
            code=CODE,
            at=sample.at,
            gpu=gpu,
            pci=sample.pci or scene.address(gpu),
            source=source_of(sample),
            first=(CODE, self.turn, stamp),
            flags=() if gpu is not None else (Flag.LOOKUP_FAILED,),
            fields={"error": error},
            text=f"the driver no longer reaches the GPU: {error}",
            evidence=(
                Evidence(source=sample.source or "nvml", at=stamp, line=f"{error} on reading {gpu or sample.pci}"),
            ),
        )

    def tick(self, scene: Scene, now: float) -> Sequence[Verdict]:
        """A GPU that stays silent is lost. Where no other answers either, the next good read of one is awaited."""
        found = list(self._proven(scene, now))
        for failing in self.failing.values():
            if failing.due is not None and now >= failing.due:
                failing.due = None
        return found

    def next_deadline(self) -> float | None:
        """When the first GPU in doubt was silent for too long."""
        return min((failing.due for failing in self.failing.values() if failing.due is not None), default=None)

    def forget(self, gpu: str) -> None:
        """A reset GPU is looked at anew."""
        self.lost.discard(gpu)
        self.failing.pop(gpu, None)
        self.good.pop(gpu, None)
