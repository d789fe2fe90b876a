"""Wall time that never goes back and never jumps, for decisions.

The Core's deadlines are points in time. If they followed a wall clock that NTP sets, a jump of an hour would
make every node silent and every order late. So this follows the monotonic clock, and leans towards the
wall clock slowly enough that no deadline notices.
"""

from vocab.clock import Clock

SLEW = 0.05  # of the time that passes: an hour of error is gone after 20 hours, and 15 s stay 15 s


class SteadyTime:
    """``now`` in seconds since the epoch, rising."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._now = clock.now()
        self._monotonic = clock.monotonic()

    def now(self) -> float:
        """The time to decide by."""
        monotonic = self._clock.monotonic()
        passed = monotonic - self._monotonic
        self._monotonic = monotonic
        self._now += passed
        error = self._clock.now() - self._now
        self._now += max(-SLEW * passed, min(SLEW * passed, error))
        return self._now
