"""A counter of the hardware that only grows, until a driver load or a reset starts it anew."""

import msgspec

from agent.probes.sane import RANGES, reason


def plausible(count: int | None) -> int | None:
    """The count, or None for a blank or impossible one."""
    low, high = RANGES["ecc_correctable"]
    return count if count is not None and reason(count, low, high) is None else None


class Baseline(msgspec.Struct):
    """The last value of one counter, and how often it started anew (its epoch)."""

    value: int | None = None
    at: float = 0.0
    epoch: int = 0

    def grew(self, value: int, now: float) -> int:
        """Take a value in; how much it grew. A smaller value is a new start, and counts whole."""
        before = self.value
        if before is not None and value < before:
            self.epoch += 1
            before = 0
        self.value, self.at = value, now
        return value - (before or 0)

    def rose(self, value: int, now: float) -> int:
        """As ``grew``, for a counter whose past says nothing: a first or a smaller value is only where it starts."""
        before, self.at = self.value, now
        self.value = value
        if before is None or value < before:
            self.epoch += before is not None
            return 0
        return value - before

    def restart(self) -> None:
        """The counter is known to start anew: the next value counts whole, in a new epoch."""
        if self.value is not None:
            self.value, self.epoch = None, self.epoch + 1
