"""Activity counters that read zero while the GPU works: the counters are broken, not the GPU.

A kernel that runs keeps at least one SM busy, so exactly zero beside full utilization and real power is the profiling
path (seen after an Xid 31; a restart of the host engine cured it for a while). A GPU that draws no power is another
matter: see activity. While it stands, the counters are shown as absent with the reason, never as zeros.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.figures import finding, read
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from agent.probes.streak import Patience, Signals, Turn
from vocab.observations import AnyObservation, GpuSample
from vocab.readings import Readings

CODE = "profiling_broken"
CONTRADICTED = "CONTRADICTED"  # why a counter is absent: what else is known of the GPU denies it
COUNTERS = (
    "graphics_active_ratio", "sm_active_ratio", "sm_occupancy_ratio", "tensor_active_ratio", "dram_active_ratio",
)  # fmt: skip
BUSY = 0.5
DRAWS = 0.35  # of the power limit: more than any GPU draws that only waits
NOTHING = 1e-4  # one warp on one SM of a large board gives 0.0076 SM activity
SUSTAINED = Patience()
SHOWN = ("utilization_ratio", "graphics_active_ratio", "sm_active_ratio", "tensor_active_ratio", "dram_active_ratio",
         "power_w", "power_limit_w")  # fmt: skip


def contradicts(readings: Readings) -> bool | None:
    """Whether the counters deny work that shows elsewhere; None where that cannot be said."""
    active = [a for a in (readings.graphics_active_ratio, readings.sm_active_ratio) if a is not None]
    if not active:
        return None
    if max(active) > NOTHING:
        return False
    if readings.utilization_ratio is None or readings.power_w is None or readings.power_limit_w is None:
        return None
    works = readings.utilization_ratio >= BUSY and readings.power_w >= DRAWS * readings.power_limit_w
    return True if works else None  # an idle GPU proves nothing of its counters


class ProfilingProbe(msgspec.Struct):
    """Follows the activity counters of each GPU."""

    signals: Signals = msgspec.field(default_factory=Signals)

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        seen = read(observation, scene)
        broken = contradicts(seen.readings) if seen else None
        if seen is None or broken is None:
            return ()
        turn = self.signals.take(seen.gpu, SUSTAINED, now, bad=broken)
        if turn is Turn.ENDED:
            return (Clear(code=CODE, at=seen.sample.at, gpu=seen.gpu),)
        if turn is None:
            return ()
        text = "activity counters read zero while the GPU works: restart the source of profiling, the GPU is sound"
        return (finding(seen.sample, seen.gpu, CODE, text, names=SHOWN),)

    def believed(self, sample: GpuSample, gpu: str | None) -> GpuSample:
        """The sample as it may be shown: without the counters while they are known to be broken."""
        if gpu is None or sample.readings is None or not self.signals.stands(gpu):
            return sample
        readings = msgspec.structs.replace(sample.readings, **dict.fromkeys(COUNTERS))
        return msgspec.structs.replace(
            sample, readings=readings, errors={**sample.errors, **dict.fromkeys(COUNTERS, CONTRADICTED)}
        )

    def forget(self, gpu: str) -> None:
        """A reset GPU is looked at anew."""
        self.signals.forget(gpu)
