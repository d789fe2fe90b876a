"""Wall time that never goes back: what the agent measures and orders by."""

from vocab.clock import Clock


class Steady:
    """The wall clock as it was at the start, carried on by the monotonic one; a jump of the wall leaves it alone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = clock.now() - clock.monotonic()

    def now(self) -> float:
        """Seconds since the epoch, as the start of this process saw it."""
        return self._ahead + self._clock.monotonic()
