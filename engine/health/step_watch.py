"""Every step against what the hardware allows for it: operations, bytes, what it waits for, how far it is from there.

Shares of a board's peak are told only of boards that are listed (vocab.catalogue.specs) and of 16-bit numbers, for
which their peak is known. Of others there is what was measured at start, and no MFU.
"""

from collections import deque

import msgspec

from engine.core.sequence import Step
from engine.health.slowness import Slowness
from engine.roofline import Bound, Cost, Roof, Shape, cost

RECENT = 256  # steps


class Figures(msgspec.Struct, frozen=True):
    """Of the latest steps; None is not known."""

    mfu: float | None = None
    mbu: float | None = None
    copy_share: float | None = None  # of the bandwidth that was measured
    intensity: float | None = None
    over_floor: float | None = None
    over_usual: float | None = None


class StepWatch:
    """Counts the steps of one engine. The step loop's thread adds, others read."""

    def __init__(self, shape: Shape, peak: Roof, measured: Roof, launches: int) -> None:
        self.peak = peak
        self.measured = measured
        self.total = Cost()
        self.bounds: dict[Bound, int] = dict.fromkeys(Bound, 0)
        self._shape = shape
        self._launches = launches
        self._slowness = Slowness()
        self.over_floor: float | None = None  # as of the last 16th step: the beat is written after each
        self.over_usual: float | None = None
        self._steps = 0
        self._latest: deque[tuple[Cost, float]] = deque(maxlen=RECENT)

    def took(self, step: Step, seconds: float) -> Cost:
        """A step has ended after ``seconds``; what it cost."""
        spans = [(span.start, span.count) for span in step.spans]
        of = cost(self._shape, spans, sum(int(span.samples) for span in step.spans))
        self.total += of
        self._latest.append((of, seconds))
        floor = self.measured.floor(of, self._launches)
        if floor is not None:
            self.bounds[floor[1]] += 1
            self._slowness.add(step.tokens, seconds / floor[0])
        self._steps += 1
        if self._steps % 16 == 0:
            self.over_floor, self.over_usual = self._slowness.over_floor, self._slowness.over_usual
        return of

    def figures(self) -> Figures:
        """Of the latest steps together."""
        latest = tuple(self._latest)
        seconds = sum(one for _, one in latest)
        if not seconds:
            return Figures()
        flops, moved = sum(of.flops for of, _ in latest), sum(of.bytes for of, _ in latest)

        def share(amount: float, rate: float | None) -> float | None:
            return amount / seconds / rate if rate else None

        return Figures(
            mfu=share(flops, self.peak.flops_per_s),
            mbu=share(moved, self.peak.bytes_per_s),
            copy_share=share(moved, self.measured.bytes_per_s),
            intensity=flops / moved if moved else None,
            over_floor=self._slowness.over_floor,
            over_usual=self._slowness.over_usual,
        )
