"""Power over the enforced limit: a GPU that its own control no longer holds, or a sensor that reads too much.

The control acts within milliseconds and readings are averages (up to a second), accurate to 5 % (NVML); so what counts
is more than a tenth over, for two minutes.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.figures import finding, read
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from agent.probes.streak import Patience, Signals, Turn
from vocab.observations import AnyObservation

CODE = "power_over_limit"
MOST_SHARE = 1.1
SUSTAINED = Patience(lasts_s=120.0, calm_s=60.0)
SHOWN = ("power_w", "power_limit_w", "clock_reasons", "temperature_c", "utilization_ratio")


class OverdrawProbe(msgspec.Struct):
    """Compares what each GPU draws with what it may."""

    signals: Signals = msgspec.field(default_factory=Signals)

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        seen = read(observation, scene)
        if seen is None:
            return ()
        power, limit = seen.readings.power_w, seen.readings.power_limit_w
        if power is None or not limit:
            return ()
        turn = self.signals.take(seen.gpu, SUSTAINED, now, bad=power > MOST_SHARE * limit)
        if turn is Turn.ENDED:
            return (Clear(code=CODE, at=seen.sample.at, gpu=seen.gpu),)
        if turn is None:
            return ()
        text = f"it draws {power:g} W with a limit of {limit:g} W, for two minutes"
        fields = {"power_w": power, "power_limit_w": limit}
        return (finding(seen.sample, seen.gpu, CODE, text, names=SHOWN, fields=fields),)

    def forget(self, gpu: str) -> None:
        """A reset GPU is looked at anew."""
        self.signals.forget(gpu)
