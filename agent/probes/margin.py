"""Thermal margin: how many degrees are left to the GPU's own limit. A warning before anything slows down.

Boards from Ada on give the margin itself; of older ones it is what is left to the slowdown threshold. Limits are read
from the device, never from a table.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.figures import finding, read
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from agent.probes.streak import Patience, Signals, Turn
from vocab.observations import AnyObservation
from vocab.readings import Readings

CODE = "thermal_margin"
LEAST_C = 5.0  # [our choice: within 5 degrees for a minute; the vendor has no number]
SUSTAINED = Patience(polls=2, lasts_s=60.0, calm_polls=2, calm_s=60.0)
SHOWN = ("margin_c", "temperature_c", "slowdown_c", "memory_temperature_c", "power_w", "fan_ratio", "clock_reasons")


def margin_of(readings: Readings) -> float | None:
    """Degrees to the limit, or None where neither it nor the limit is known."""
    if readings.margin_c is not None:
        return readings.margin_c
    if readings.temperature_c is None or readings.slowdown_c is None:
        return None
    return readings.slowdown_c - readings.temperature_c


class MarginProbe(msgspec.Struct):
    """Follows the margin of each GPU."""

    signals: Signals = msgspec.field(default_factory=Signals)

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        seen = read(observation, scene)
        margin = margin_of(seen.readings) if seen else None
        if seen is None or margin is None:
            return ()
        turn = self.signals.take(seen.gpu, SUSTAINED, now, bad=margin <= LEAST_C)
        if turn is Turn.ENDED:
            return (Clear(code=CODE, at=seen.sample.at, gpu=seen.gpu),)
        if turn is None:
            return ()
        text = f"{margin:g} degrees to the thermal limit for a minute"
        return (finding(seen.sample, seen.gpu, CODE, text, names=SHOWN, fields={"margin_c": margin}),)

    def forget(self, gpu: str) -> None:
        """A reset GPU is looked at anew."""
        self.signals.forget(gpu)
