"""Activity truth: 100 % utilization only says that a kernel is resident, not that it works.

Busy by that counter, yet SM activity near zero and power at idle, for two minutes on end: a hang, or a
collective that waits for a lost peer. It says so and never holds a GPU: it does not say which GPU is to
blame. A GPU that draws power with SM activity zero has broken counters instead, and is left out here.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.figures import finding, read
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from agent.probes.streak import NEEDED
from vocab.activity import contradicts
from vocab.observations import AnyObservation, GpuSample

CODE = "activity_contradiction"
WINDOW_S = 120.0  # kernels that load weights or compile can look like this for a minute
SHOWN = ("utilization_ratio", "sm_active_ratio", "tensor_active_ratio", "dram_active_ratio", "power_w", "power_limit_w")


class Doubt(msgspec.Struct):
    """Since when a GPU contradicts itself, and whether that was said."""

    since: float | None = None
    agreed: int = 0
    raised: bool = False


class ActivityProbe(msgspec.Struct):
    """Watches each GPU for a window of contradiction."""

    doubts: dict[str, Doubt] = {}

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        seen = read(observation, scene)
        doubtful = contradicts(seen.readings) if seen else None
        if seen is None or doubtful is None:
            return ()
        gpu, sample = seen.gpu, seen.sample
        doubt = self.doubts.get(gpu)
        if doubt is None:
            doubt = self.doubts[gpu] = Doubt()
        if not doubtful:
            return self._agree(doubt, gpu, sample)
        doubt.since, doubt.agreed = (now if doubt.since is None else doubt.since), 0
        if doubt.raised or now - doubt.since < WINDOW_S:
            return ()
        doubt.raised = True
        text = f"busy by one counter, idle by SM activity and power, for {now - doubt.since:.0f} s"
        return (finding(sample, gpu, CODE, text, names=SHOWN),)

    def _agree(self, doubt: Doubt, gpu: str, sample: GpuSample) -> Sequence[Verdict]:
        doubt.since, doubt.agreed = None, doubt.agreed + 1
        if not doubt.raised or doubt.agreed < NEEDED:
            return ()
        doubt.raised = False
        return (Clear(code=CODE, at=sample.at, gpu=gpu),)

    def forget(self, gpu: str) -> None:
        """A reset GPU is looked at anew."""
        self.doubts.pop(gpu, None)
