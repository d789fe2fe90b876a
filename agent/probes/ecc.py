"""Memory errors by the GPU's own counters.

Uncorrectable (volatile): any growth is an event; the counter starts anew at driver load and reset, and a
fall is such a start, never a negative count. Correctable: a rate that lasts is what counts, for it blinds
monitors under load long before anything is logged; a rate that stops proves nothing, so it ends only by
a reset or a person. Where a source has no volatile counter of a GPU, its lifetime counter tells the same growth.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.baseline import Baseline, plausible
from agent.probes.figures import finding, read
from agent.probes.probe import Finding, Verdict
from agent.probes.scene import Scene
from agent.probes.streak import NEEDED
from vocab.events import Recovery, Severity
from vocab.observations import AnyObservation, GpuSample

UNCORRECTABLE = "ecc_uncorrectable"
RATE = "ecc_correctable_rate"
ERROR_PER_S = 100.0  # field report of a board at thousands per second under load; sound boards are far below 1
WARN_PER_S = 10.0  # DCGM's figure for the highest rate of single-bit errors
WINDOW_S = 9.5  # counters are read every 10 s: a rate over less sees the same value twice
SHOWN = (
    "ecc_correctable",
    "ecc_correctable_lifetime",
    "ecc_uncorrectable",
    "ecc_uncorrectable_lifetime",
    "remap_pending",
)
WORDS = {"since_reset": "since the last reset", "in_its_life": "in its life"}


class Rate(msgspec.Struct):
    """How fast a counter has grown, window by window."""

    value: int | None = None
    at: float = 0.0
    fast: int = 0
    slow: int = 0
    raised: int = 0

    def take(self, value: int, now: float) -> float | None:
        """Errors per second over the window that this value ends, or None inside a window."""
        if self.value is None or value < self.value:
            self.value, self.at = value, now
            return None
        if now - self.at < WINDOW_S:
            return None
        rate = (value - self.value) / (now - self.at)
        self.value, self.at = value, now
        self.fast = self.fast + 1 if rate > ERROR_PER_S else 0
        self.slow = self.slow + 1 if rate > WARN_PER_S else 0
        return rate

    def severity(self) -> Severity | None:
        """What the last windows amount to."""
        if self.fast >= NEEDED:
            return Severity.ERROR
        return Severity.WARNING if self.slow >= NEEDED else None


class EccProbe(msgspec.Struct):
    """Follows both counters of each GPU."""

    uncorrectable: dict[str, Baseline] = {}
    rates: dict[str, Rate] = {}
    volatile: set[str] = set()  # ``gpu/counter`` that were ever read: their lifetime counters are not looked at

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        seen = read(observation, scene)
        if seen is None:
            return ()
        found = (self._uncorrectable(seen.sample, seen.gpu, now), self._rate(seen.sample, seen.gpu, now))
        return tuple(verdict for verdict in found if verdict is not None)

    def _figure(self, sample: GpuSample, gpu: str, name: str) -> int | None:
        """The volatile counter; the one of the GPU's life where that was never read."""
        count = plausible(getattr(sample.readings, name))
        if count is not None:
            self.volatile.add(f"{gpu}/{name}")
        elif f"{gpu}/{name}" not in self.volatile:
            count = plausible(getattr(sample.readings, f"{name}_lifetime"))
        return count

    def _uncorrectable(self, sample: GpuSample, gpu: str, now: float) -> Finding | None:
        count = self._figure(sample, gpu, "ecc_uncorrectable")
        if count is None:
            return None
        baseline = self.uncorrectable.setdefault(gpu, Baseline())
        since = "since_reset" if f"{gpu}/ecc_uncorrectable" in self.volatile else "in_its_life"
        grown = baseline.grew(count, now) if since == "since_reset" else baseline.rose(count, now)
        if grown == 0:
            return None
        text = f"{grown} more uncorrectable memory errors ({count} {WORDS[since]})"
        first = (baseline.epoch, UNCORRECTABLE, count)
        fields = {"grown": grown, since: count}
        return finding(sample, gpu, UNCORRECTABLE, text, names=SHOWN, first=first, fields=fields)

    def _rate(self, sample: GpuSample, gpu: str, now: float) -> Finding | None:
        count = self._figure(sample, gpu, "ecc_correctable")
        if count is None:
            return None
        rate = self.rates.setdefault(gpu, Rate())
        per_s = rate.take(count, now)
        severity = rate.severity()
        if per_s is None or severity is None or severity.rank + 1 <= rate.raised:
            return None
        rate.raised = severity.rank + 1
        text = f"{per_s:.0f} corrected memory errors a second, {NEEDED} windows in a row"
        fields = {"per_s": round(per_s, 1)}
        recovery = Recovery.DRAIN_AND_RESET if severity is Severity.ERROR else None  # it blinds its monitor under load
        return finding(sample, gpu, RATE, text, names=SHOWN, severity=severity, recovery=recovery, fields=fields)

    def forget(self, gpu: str) -> None:
        """A reset or reboot starts the counters of this GPU anew, and its case as well."""
        self.rates.pop(gpu, None)
        if gpu in self.uncorrectable:
            self.uncorrectable[gpu].restart()
