"""Row remapping: a bad memory row is replaced by a spare one at the next reset (pending), or cannot be (failed)."""

from collections.abc import Sequence

import msgspec

from agent.probes.baseline import plausible
from agent.probes.figures import finding
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from vocab.observations import AnyObservation, GpuSample

SIGNALS = {
    "remap_pending": "a memory row waits for a reset to be replaced",
    "remap_failed": "a memory row could not be replaced: no spare row is left for it",
}
SHOWN = ("remap_pending", "remap_failed", "remap_correctable", "remap_uncorrectable", "remap_banks_none")


class RemapProbe(msgspec.Struct):
    """Remembers, for each flag, the GPUs on which it stands."""

    standing: dict[str, set[str]] = {}
    turns: dict[str, int] = {}  # how often a flag has risen on a GPU, to tell one rise from the next

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        if not isinstance(observation, GpuSample) or observation.readings is None:
            return ()
        gpu = scene.sampled(observation)
        if gpu is None:
            return ()
        verdicts: list[Verdict] = []
        for code, text in SIGNALS.items():
            flag = plausible(getattr(observation.readings, code))
            standing = self.standing.setdefault(code, set())
            if flag and gpu not in standing:
                standing.add(gpu)
                turn = self.turns[f"{code}/{gpu}"] = self.turns.get(f"{code}/{gpu}", 0) + 1
                verdicts.append(finding(observation, gpu, code, text, names=SHOWN, first=(turn, code, flag)))
            elif flag == 0 and gpu in standing:
                standing.discard(gpu)
                verdicts.append(Clear(code=code, at=observation.at, gpu=gpu))
        return verdicts

    def forget(self, gpu: str) -> None:
        """A reset GPU is looked at anew; ``turns`` stays, for it tells its events apart."""
        for standing in self.standing.values():
            standing.discard(gpu)
