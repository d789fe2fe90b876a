"""What NVML says is wrong with the board itself: its InfoROM is corrupted, or a power cable is missing.

Both are a person's. A corrupted InfoROM is a warning, for the GPU goes on working: what it records of repairs and
errors may be lost (NVIDIA's GPU operator calls such a GPU faulty, DCGM sends it to triage). Without its power cable
the driver does not start a GPU, and no new start of the node mends that.
"""

from collections.abc import Iterator, Sequence

import msgspec

from agent.probes.degraded import WHOLE, was_read
from agent.probes.figures import node_finding, source_of
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from agent.probes.streak import Patience, Signals, Turn
from vocab.events import Recovery
from vocab.observations import AnyObservation, GpuSample

CORRUPTED, UNPOWERED = "CORRUPTED_INFOROM", "INSUFFICIENT_POWER"  # NVML 14 and 8
CODES = {CORRUPTED: "inforom_corrupted", UNPOWERED: "gpu_init_failed"}
TEXTS = {
    CORRUPTED: "its InfoROM is corrupted, as the driver's library says",
    UNPOWERED: "a power cable is missing, as the driver's library says",
}
THREE = Patience()


class BoardProbe(msgspec.Struct):
    """Counts the reads of each GPU that end with one of these errors."""

    signals: Signals = msgspec.field(default_factory=Signals)
    failed: dict[str, set[str]] = {}  # GPU and error -> the readings that ended with it
    turns: dict[str, int] = {}

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        if not isinstance(observation, GpuSample):
            return ()
        gpu = scene.sampled(observation)
        if gpu is None or not (self.failed or observation.error in CODES or observation.errors):
            return ()
        return list(self._sampled(observation, gpu, now))

    def _sampled(self, sample: GpuSample, gpu: str, now: float) -> Iterator[Verdict]:
        for error, code in CODES.items():
            key = f"{gpu}/{error}"
            bad = {name for name, word in (*sample.errors.items(), (WHOLE, sample.error)) if word == error}
            if not bad and not any(was_read(sample, name) for name in self.failed.get(key, ())):
                continue  # it says nothing of what failed: most samples hold only what is read quickly
            turn = self.signals.take(key, THREE, now, bad=bool(bad))
            if bad:
                self.failed.setdefault(key, set()).update(bad)
            elif key not in self.signals.streaks:
                self.failed.pop(key, None)
            if turn is Turn.RAISED:
                yield self._finding(sample, gpu, error)
            elif turn is Turn.ENDED and error == CORRUPTED:  # one without power was never started: that ends by a start
                yield Clear(code=code, at=sample.at, gpu=gpu)

    def _finding(self, sample: GpuSample, gpu: str, error: str) -> Verdict:
        code = CODES[error]
        key = f"{gpu}/{code}"
        self.turns[key] = self.turns.get(key, 0) + 1
        return node_finding(
            code,
            sample.at,
            TEXTS[error],
            source=source_of(sample),
            gpu=gpu,
            first=(self.turns[key],),
            recovery=Recovery.CONTACT_SUPPORT,
            fields={"error": error, "readings": sorted(self.failed[f"{gpu}/{error}"])},
        )

    def forget(self, gpu: str) -> None:
        """A reset GPU is looked at anew; ``turns`` stays, for it tells its events apart."""
        self.signals.forget(gpu)
        self.failed = {key: names for key, names in self.failed.items() if not key.startswith(gpu + "/")}
