"""PCIe replays: packets that were sent again. Some are normal; the limit a minute grows with generation and lanes."""

from collections.abc import Sequence
from math import ceil

import msgspec

from agent.probes.figures import finding, read
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from agent.probes.streak import Patience, Signals, Turn
from vocab.observations import AnyObservation
from vocab.readings import Readings

CODE = "pcie_replays"
PER_LANE = {1: 0.15, 2: 0.3, 3: 0.48, 4: 0.96, 5: 1.92, 6: 3.84}  # replays a minute (DCGM's health watch)
USUAL = (4, 16)  # generation and lanes where the link does not say
WINDOW_S = 60.0
SAID = Patience(polls=1, calm_polls=5)  # windows: one over the limit is DCGM's warning, five minutes under it end it
SHOWN = ("pcie_replays", "pcie_generation", "pcie_width")


class Window(msgspec.Struct):
    """Where a window of counting began."""

    value: int | None
    at: float
    turn: int = 0


class ReplaysProbe(msgspec.Struct):
    """Counts replays of each GPU by the minute."""

    windows: dict[str, Window] = {}
    signals: Signals = msgspec.field(default_factory=Signals)

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        seen = read(observation, scene)
        count = seen.readings.pcie_replays if seen else None
        if seen is None or count is None:
            return ()
        window = self.windows.get(seen.gpu)
        if window is None or window.value is None or count < window.value:  # a driver load or reset started it anew
            self.windows[seen.gpu] = Window(count, now, window.turn if window else 0)
            return ()
        if now - window.at < WINDOW_S:
            return ()
        per_minute, limit = (count - window.value) * 60.0 / (now - window.at), limit_of(seen.readings)
        window.value, window.at = count, now
        turn = self.signals.take(seen.gpu, SAID, now, bad=per_minute > limit)
        if turn is Turn.ENDED:
            return (Clear(code=CODE, at=seen.sample.at, gpu=seen.gpu),)
        if turn is None:
            return ()
        window.turn += 1
        text = f"{per_minute:.0f} PCIe replays a minute, over the {limit} that are normal"
        fields = {"per_minute": round(per_minute, 1), "limit": limit}
        first = (CODE, window.turn, count)
        return (finding(seen.sample, seen.gpu, CODE, text, names=SHOWN, first=first, fields=fields),)

    def forget(self, gpu: str) -> None:
        """A reset starts the counter anew."""
        self.signals.forget(gpu)
        if gpu in self.windows:
            self.windows[gpu].value = None


def limit_of(readings: Readings) -> int:
    """The most replays a minute that are normal for this link."""
    generation, width = readings.pcie_generation or USUAL[0], readings.pcie_width or USUAL[1]
    return ceil(PER_LANE.get(generation, PER_LANE[6]) * width)
