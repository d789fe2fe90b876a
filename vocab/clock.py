"""Time as an argument. Decisions get ``now``; only loops hold a Clock."""

import time
from typing import Protocol


class Clock(Protocol):
    """Two readings of time. ``monotonic`` never goes back and orders durations; ``now`` may jump."""

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds of CLOCK_MONOTONIC, comparable between processes of one boot."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds of CLOCK_MONOTONIC."""
        return time.monotonic()


class VirtualClock:
    """A clock that moves only when told: for tests, replay and the simulator."""

    def __init__(self, now: float = 0.0) -> None:
        self._now = now
        self._monotonic = 0.0

    def now(self) -> float:
        """The virtual wall time, seconds since the epoch."""
        return self._now

    def monotonic(self) -> float:
        """Virtual seconds since this clock was made."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass for both clocks."""
        self._now += seconds
        self._monotonic += seconds

    def step_wall(self, seconds: float) -> None:
        """Jump the wall clock alone, as NTP does."""
        self._now += seconds
