"""Memory that needs a repair, by flags of the GPU: a row remap that waits for a reset (pending) or cannot be done
(failed), and SRAM with more errors than its limit, for which no remap exists.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.figures import finding, read
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from vocab.observations import AnyObservation

# code -> the reading that says it, and what that means (DCGM 396, 395, 346; NVML fields 144, 145)
SIGNALS: dict[str, tuple[str, str]] = {
    "remap_pending": ("remap_pending", "a memory row waits for a reset to be replaced"),
    "remap_failed": ("remap_failed", "a memory row could not be replaced: no spare row is left for it"),
    "sram_threshold": ("sram_threshold_exceeded", "the SRAM has had more uncorrectable errors than its limit allows"),
}
SHOWN = ("remap_pending", "remap_failed", "remap_correctable", "remap_uncorrectable", "remap_banks_none",
         "sram_threshold_exceeded", "sram_uncorrectable_lifetime")  # fmt: skip


class RemapProbe(msgspec.Struct):
    """Remembers, for each flag, the GPUs on which it stands."""

    standing: dict[str, set[str]] = {}
    turns: dict[str, int] = {}  # how often a flag has risen on a GPU, to tell one rise from the next

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        seen = read(observation, scene)
        if seen is None:
            return ()
        gpu, verdicts = seen.gpu, list[Verdict]()
        for code, (name, text) in SIGNALS.items():
            flag = getattr(seen.readings, name)
            standing = self.standing.setdefault(code, set())
            if flag and gpu not in standing:
                standing.add(gpu)
                turn = self.turns[f"{code}/{gpu}"] = self.turns.get(f"{code}/{gpu}", 0) + 1
                verdicts.append(finding(seen.sample, gpu, code, text, names=SHOWN, first=(turn, code, flag)))
            elif flag == 0 and gpu in standing:
                standing.discard(gpu)
                verdicts.append(Clear(code=code, at=seen.sample.at, gpu=gpu))
        return verdicts

    def forget(self, gpu: str) -> None:
        """A reset GPU is looked at anew; ``turns`` stays, for it tells its events apart."""
        for standing in self.standing.values():
            standing.discard(gpu)
