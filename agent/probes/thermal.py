"""Thermal slowdown: the GPU runs slower because it is hot. Never a hold by itself.

0x20 (the driver slows down) is a warning; 0x40 and 0x48 (the hardware halves its clocks) are an error
only at or over the GPU's own slowdown temperature: below it the bit also flashes at changes of P-state.
Three polls in a row raise it, three clear polls end it, a missing poll changes nothing.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.figures import finding, read
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from agent.probes.streak import NEEDED, Streak
from vocab.events import Severity
from vocab.observations import AnyObservation
from vocab.readings import Readings

CODE = "thermal_slowdown"
SW_THERMAL = 0x20
HW_THERMAL = 0x40
HW_SLOWDOWN = 0x8  # alone: heat, or a draw of power too sharp; beside 0x40 or 0x80 it says nothing more
BRAKE = 0x80  # the chassis' doing, and not heat: see power
ALL_KNOWN = 0xFFFF  # NVML defines nine bits; a mask far above them is a failed read, not a reason
SHOWN = ("clock_reasons", "temperature_c", "slowdown_c", "memory_temperature_c", "power_w")


def known_mask(readings: Readings | None) -> int | None:
    """The mask of clock reasons, or None where it was not read (all ones is a failed read)."""
    mask = readings.clock_reasons if readings else None
    return mask if mask is not None and 0 <= mask <= ALL_KNOWN else None


def severity_of(mask: int, readings: Readings) -> Severity | None:
    """How bad this mask is, or None if heat is not its reason."""
    if mask & HW_THERMAL:
        hot, limit = readings.temperature_c, readings.slowdown_c
        return Severity.ERROR if hot is not None and limit is not None and hot >= limit else Severity.WARNING
    if mask & SW_THERMAL or (mask & HW_SLOWDOWN and not mask & BRAKE):
        return Severity.WARNING
    return None


class ThermalProbe(msgspec.Struct):
    """Counts slowed-down polls of each GPU."""

    streaks: dict[str, Streak] = {}

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        seen = read(observation, scene)
        mask = known_mask(seen.readings) if seen else None
        if seen is None or mask is None:
            return ()
        gpu, sample = seen.gpu, seen.sample
        streak = self.streaks.get(gpu)
        if streak is None:
            streak = self.streaks[gpu] = Streak()
        severity = severity_of(mask, seen.readings) if mask else None
        streak.count(bad=severity is not None, now=now)
        if severity is not None and streak.bad >= NEEDED and severity.rank + 1 > streak.raised:
            streak.raised = severity.rank + 1
            reasons = f"0x{mask:x}"
            why = "by heat" if mask & (HW_THERMAL | SW_THERMAL) else "by heat or a draw of power too sharp"
            text = f"clocks are held down {why} (reasons {reasons})"
            fields = {"clock_reasons": reasons}
            return (finding(sample, gpu, CODE, text, names=SHOWN, severity=severity, fields=fields),)
        if streak.raised and streak.good >= NEEDED:
            streak.raised = 0
            return (Clear(code=CODE, at=sample.at, gpu=gpu),)
        return ()

    def forget(self, gpu: str) -> None:
        """A reset GPU is looked at anew."""
        self.streaks.pop(gpu, None)
