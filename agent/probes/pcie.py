"""The PCIe link: its width should never change, its generation only falls to save power.

The generation counts only while the GPU works (P-state 0, or busy), for it falls when idle. Width counts always, and
is an error once the GPU is at work: nvidia-smi's own help says that an idle link may be narrower, DCGM fails on it. A
GPU in a narrow slot has a narrow maximum, so what is compared is now against the most that board and slot can do.
"""

from collections.abc import Iterator, Sequence

import msgspec

from agent.probes.figures import Read, finding, read
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from agent.probes.streak import Patience, Signals, Turn
from vocab.events import Severity
from vocab.observations import AnyObservation
from vocab.readings import Readings

WIDTH, GENERATION = "pcie_width", "pcie_generation"
BUSY = 0.5  # a GPU this busy has had the time to raise its link
AT_ONCE = Patience(polls=1)  # a narrow link is a fact of the slot, not a sample of something that moves
SUSTAINED = Patience(polls=3, calm_polls=1)
SHOWN = ("pcie_width", "pcie_width_max", "pcie_generation", "pcie_generation_max", "utilization_ratio",
         "performance_state")  # fmt: skip


class PcieProbe(msgspec.Struct):
    """Compares each GPU's link with its best."""

    signals: Signals = msgspec.field(default_factory=Signals)
    turns: dict[str, int] = {}

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        seen = read(observation, scene)
        if seen is None:
            return ()
        return [*self._width(seen, now), *self._generation(seen, now)]

    def _width(self, seen: Read, now: float) -> Iterator[Verdict]:
        width, most = seen.readings.pcie_width, seen.readings.pcie_width_max
        if width is not None and most is not None:
            text = f"the PCIe link has {width} of {most} lanes"
            idle = seen.readings.performance_state is not None and not works(seen.readings)
            severity = Severity.WARNING if idle else None
            text += " while it is idle" if idle else ""
            yield from self._judge(seen, WIDTH, AT_ONCE, now, text, severity, bad=width < most, now_max=(width, most))

    def _generation(self, seen: Read, now: float) -> Iterator[Verdict]:
        generation, most = seen.readings.pcie_generation, seen.readings.pcie_generation_max
        if generation is None or most is None or (generation < most and not works(seen.readings)):
            return
        text = f"the PCIe link runs at generation {generation} of {most} under load"
        bad = generation < most
        yield from self._judge(seen, GENERATION, SUSTAINED, now, text, None, bad=bad, now_max=(generation, most))

    def _judge(
        self,
        seen: Read,
        code: str,
        patience: Patience,
        now: float,
        text: str,
        severity: Severity | None,
        *,
        bad: bool,
        now_max: tuple[int, int],
    ) -> Iterator[Verdict]:
        key = f"{seen.gpu}/{code}"
        turn = self.signals.take(key, patience, now, bad=bad, rank=1 if severity else 2)
        if turn is Turn.RAISED:
            self.turns[key] = self.turns.get(key, 0) + 1
            fields = {"now": now_max[0], "max": now_max[1]}
            first = (code, self.turns[key], *now_max)
            yield finding(seen.sample, seen.gpu, code, text, names=SHOWN, first=first, severity=severity, fields=fields)
        elif turn is Turn.ENDED:
            yield Clear(code=code, at=seen.sample.at, gpu=seen.gpu)

    def forget(self, gpu: str) -> None:
        """A reset GPU trains its link anew."""
        self.signals.forget(gpu)


def works(readings: Readings) -> bool:
    """Whether the GPU is at work, so that its link should be at its best."""
    return readings.performance_state == 0 or (readings.utilization_ratio or 0.0) >= BUSY
