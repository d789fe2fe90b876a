"""Whether steps take longer than they used to, by the engine's own history. Pure.

What is compared is how many times its floor (engine.roofline) a step took: that leaves out how many tokens it had and
how far back they looked. Each size of batch (by powers of two) has a usual value of its own, the median of its first
steps, and a spread, their median deviation. Within a few deviations of the usual nothing is called slow.
"""

from collections import deque
from statistics import median

LEARNED = 128  # steps of one size of batch, until it has a usual value
SKIPPED = 8  # its very first ones: caches fill, clocks rise
RECENT = 64
ENOUGH = 16  # recent steps, before anything is said
DEVIATIONS = 5.0


class Usual:
    """Of one size of batch: median and median deviation of what its first steps took."""

    def __init__(self) -> None:
        self._first: list[float] = []
        self.value: float | None = None
        self.spread = 0.0

    def over(self, ratio: float) -> float | None:
        """How many times the usual this is; 1 within the spread, None while the usual is not known."""
        if self.value is None:
            self._first.append(ratio)
            if len(self._first) >= LEARNED + SKIPPED:
                kept = self._first[SKIPPED:]
                self.value = median(kept)
                self.spread = median(abs(one - self.value) for one in kept)
                self._first.clear()
            return None
        return 1.0 if abs(ratio - self.value) <= DEVIATIONS * self.spread else ratio / self.value


class Slowness:
    """All sizes of batch of one engine."""

    def __init__(self) -> None:
        self._usual: dict[int, Usual] = {}
        self._over_floor: deque[float] = deque(maxlen=RECENT)
        self._over_usual: deque[float] = deque(maxlen=RECENT)

    def add(self, tokens: int, over_floor: float) -> None:
        """One step has ended."""
        self._over_floor.append(over_floor)
        over = self._usual.setdefault(tokens.bit_length(), Usual()).over(over_floor)
        if over is not None:
            self._over_usual.append(over)

    @property
    def over_floor(self) -> float | None:
        """How many times what the hardware allows the latest steps took; None before enough of them."""
        return _middle(self._over_floor)

    @property
    def over_usual(self) -> float | None:
        """How many times what they used to take."""
        return _middle(self._over_usual)


def _middle(values: deque[float]) -> float | None:
    kept = tuple(values)
    return median(kept) if len(kept) >= ENOUGH else None
