"""Power brake: the chassis orders the GPU to halve its clocks (bit 0x80). A fault of power, not of the GPU.

Three asserted samples raise it; a missing one neither counts nor resets; it ends five minutes after the
last asserted sample, if the GPU was read as clear since.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.figures import finding, read
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from agent.probes.streak import NEEDED, Streak
from agent.probes.thermal import known_mask
from vocab.observations import AnyObservation

CODE = "power_brake"
BRAKE = 0x80
QUIET_S = 300.0  # a failing supply asserts the signal in bursts minutes apart
SHOWN = ("clock_reasons", "power_w", "power_limit_w", "power_brake_s")


class PowerProbe(msgspec.Struct):
    """Counts braked polls of each GPU."""

    streaks: dict[str, Streak] = {}

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        seen = read(observation, scene)
        mask = known_mask(seen.readings) if seen else None
        if seen is None or mask is None:
            return ()
        streak = self.streaks.get(seen.gpu)
        if streak is None:
            streak = self.streaks[seen.gpu] = Streak()
        streak.count(bad=bool(mask & BRAKE), now=now)
        if streak.bad >= NEEDED and not streak.raised:
            streak.raised = 1
            reasons = f"0x{mask:x}"
            text = f"the chassis asserts the power brake (reasons {reasons})"
            return (finding(seen.sample, seen.gpu, CODE, text, names=SHOWN, fields={"clock_reasons": reasons}),)
        return ()

    def tick(self, scene: Scene, now: float) -> Sequence[Verdict]:
        """End what has been quiet for long enough."""
        ended: list[Verdict] = []
        for gpu, streak in self.streaks.items():
            if streak.raised and streak.good and now >= streak.last_bad + QUIET_S:
                streak.raised = 0
                ended.append(Clear(code=CODE, at=now, gpu=gpu))
        return ended

    def next_deadline(self) -> float | None:
        """When the first quiet GPU's time is over."""
        times = [streak.last_bad + QUIET_S for streak in self.streaks.values() if streak.raised and streak.good]
        return min(times, default=None)

    def forget(self, gpu: str) -> None:
        """A reset GPU is looked at anew."""
        self.streaks.pop(gpu, None)
