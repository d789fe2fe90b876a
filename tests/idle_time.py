"""A loop whose time passes only while everybody waits: minutes of waiting take none, and pass the same way each time.

For tests of loops that look, renew and give up: whatever is due next is done next. Nothing in it may wait for a thread
or a socket.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any

EPOCH_S = 1_796_000_000.0  # of the wall clock when a loop begins


class _Idle(selectors.SelectSelector):
    """Instead of waiting it lets the time pass for which it would have waited."""

    def __init__(self) -> None:
        super().__init__()
        self.passed_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What can be read, without waiting for it."""
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everybody waits, and nothing will ever happen"
            self.passed_s += max(0.0, timeout)
        return ready


class IdleLoop(asyncio.SelectorEventLoop):
    """``time`` begins at 0."""

    def __init__(self) -> None:
        self._idle = _Idle()
        super().__init__(self._idle)

    def time(self) -> float:
        """Seconds that have been waited for."""
        return self._idle.passed_s


class LoopClock:
    """Both clocks, by the time of the running loop."""

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        return EPOCH_S + self.monotonic()

    def monotonic(self) -> float:
        """Seconds since the loop began."""
        return asyncio.get_running_loop().time()


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """As ``asyncio.run``, in no time."""
    with asyncio.Runner(loop_factory=IdleLoop) as runner:
        runner.run(coroutine)
