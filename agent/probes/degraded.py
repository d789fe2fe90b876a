"""Readings that fail: five in a row of one reading are probe_degraded, and nothing is concluded from any of them.

What is not supported, not there or blank is normal for many boards and says nothing. What may not be read is told
once, as information; a GPU of which nothing may be read is a warning until it can be. A GPU that is gone, or asks for
a reset, has its own code.
"""

from collections.abc import Iterator, Sequence

import msgspec

from agent.probes.figures import node_finding, source_of
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from agent.probes.streak import Patience, Signals, Turn
from vocab.events import Recovery, Scope, Severity, Source
from vocab.observations import AnyObservation, GpuSample, SourceState

CODE, PERMISSION = "probe_degraded", "probe_permission"
FIVE = Patience(polls=5)  # field report: single garbage values come on sound boards, five in a row do not
ABSENT = frozenset({"NOT_SUPPORTED", "NOT_FOUND", "BLANK", "NO_DATA", "FUNCTION_NOT_FOUND", "ARGUMENT_VERSION_MISMATCH",
                    "DEPRECATED", "NOT_READY", "NOT_AVAILABLE", "N/A"})  # fmt: skip
REFUSED = frozenset({"NO_PERMISSION", "NOT_PERMISSIONED"})
# Told by presence, by advice, and as what is wrong with the board.
ELSEWHERE = frozenset(
    {"GPU_IS_LOST", "RESET_REQUIRED", "GPU_REQUIRES_RESET", "CORRUPTED_INFOROM", "INSUFFICIENT_POWER"}
)
WHOLE = "all readings"
OWN = {"nvml": Source.NVML, "dcgm": Source.DCGM, "exporter": Source.EXPORTER}  # what they lack, they say themselves


class DegradedProbe(msgspec.Struct):
    """Counts failed reads by GPU and reading."""

    signals: Signals = msgspec.field(default_factory=Signals)
    failing: dict[str, dict[str, str]] = {}  # GPU -> reading -> error, of those that were said
    refused: set[str] = set()
    shut: set[str] = set()  # GPUs of which nothing may be read
    unsupported: dict[str, tuple[str, ...]] = {}  # by source, as told

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample, or a source that reads less than it should."""
        match observation:
            case GpuSample():
                gpu = scene.sampled(observation)
                return () if gpu is None or gpu in scene.absent else list(self._sampled(observation, gpu, now))
            case SourceState(state="degraded") if observation.unsupported:
                return self._lacking(observation)
        return ()

    def _sampled(self, sample: GpuSample, gpu: str, now: float) -> Iterator[Verdict]:
        yield from self._door(sample, gpu)
        bad, refused = _failed(sample)
        if refused and gpu not in self.refused:
            self.refused.add(gpu)
            yield self._refusal(sample, gpu, refused)
        if not bad and not self.failing.get(gpu) and not self.signals.streaks:
            return
        watched = {key.partition("/")[2] for key in self.signals.streaks if key.startswith(gpu + "/")}
        before = dict(self.failing.get(gpu, {}))
        for name in sorted(bad.keys() | watched):
            if name not in bad and not was_read(sample, name):
                continue
            turn = self.signals.take(f"{gpu}/{name}", FIVE, now, bad=name in bad)
            if turn is Turn.RAISED:
                self.failing.setdefault(gpu, {})[name] = bad[name]
            elif turn is Turn.ENDED:
                self.failing.get(gpu, {}).pop(name, None)
        after = self.failing.get(gpu, {})
        if after.keys() - before.keys():
            yield self._say(sample, gpu)
        elif before and not after:
            self.failing.pop(gpu, None)
            yield Clear(code=CODE, at=sample.at, gpu=gpu)

    def _door(self, sample: GpuSample, gpu: str) -> Iterator[Verdict]:
        """Tell of a GPU of which nothing may be read, and that it is open again."""
        if sample.error in REFUSED and gpu not in self.shut:
            self.shut.add(gpu)
            text = f"nothing of this GPU may be read by the agent's user ({sample.error}): see its groups and cgroup"
            source = source_of(sample)
            yield node_finding(PERMISSION, sample.at, text, source=source, gpu=gpu, scope=Scope.GPU, first=(WHOLE,))
        elif sample.error is None and gpu in self.shut:
            self.shut.discard(gpu)
            yield Clear(code=PERMISSION, at=sample.at, gpu=gpu)

    def _say(self, sample: GpuSample, gpu: str) -> Verdict:
        failing = self.failing[gpu]
        errors = ", ".join(f"{name} ({error})" for name, error in sorted(failing.items()))
        return node_finding(
            CODE,
            sample.at,
            f"{FIVE.polls} reads in a row gave nothing of use: {errors}",
            source=source_of(sample),
            gpu=gpu,
            first=(*sorted(failing),),
            fields={"errors": dict(failing)},
        )

    @staticmethod
    def _refusal(sample: GpuSample, gpu: str, names: list[str]) -> Verdict:
        text = f"may not be read by the agent's user: {', '.join(names)}"
        return node_finding(
            PERMISSION,
            sample.at,
            text,
            source=source_of(sample),
            gpu=gpu,
            severity=Severity.INFO,
            recovery=Recovery.NONE,
            fields={"readings": names},
        )

    def _lacking(self, seen: SourceState) -> Sequence[Verdict]:
        """What a source cannot read is told once, and is no outage."""
        lacking = tuple(sorted(seen.unsupported))
        if self.unsupported.get(seen.source) == lacking:
            return ()
        self.unsupported[seen.source] = lacking
        fields = {"source": seen.source, "unsupported": list(lacking), "error": seen.error}
        text = f"{seen.source} does not know: {', '.join(lacking)}"
        told = node_finding(
            CODE,
            seen.at,
            text,
            source=OWN.get(seen.source, Source.HOST),
            scope=Scope.NODE,
            first=lacking,
            severity=Severity.INFO,
            recovery=Recovery.NONE,
            fields=fields,
        )
        return (told,)

    def forget(self, gpu: str) -> None:
        """A reset GPU is looked at anew."""
        self.signals.forget(gpu)
        self.failing.pop(gpu, None)


def _failed(sample: GpuSample) -> tuple[dict[str, str], list[str]]:
    """The readings that failed, with their errors, and those that may not be read."""
    if sample.error is not None:
        return ({} if sample.error in ABSENT | REFUSED | ELSEWHERE else {WHOLE: sample.error}), []
    refused = sorted(name for name, error in sample.errors.items() if error in REFUSED)
    return {n: e for n, e in sample.errors.items() if e not in ABSENT | REFUSED | ELSEWHERE}, refused


def was_read(sample: GpuSample, name: str) -> bool:
    """Whether this sample says anything of the reading: a missing one neither counts nor ends a row."""
    if name == WHOLE:
        return sample.error is None
    if name == "processes":
        return sample.processes is not None
    if name == "links":
        return bool(sample.links)
    return getattr(sample.readings, name, None) is not None
