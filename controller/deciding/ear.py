"""Whether we listen: how long nothing was read of what had arrived, because this process had no time for it.

A process that was stopped, had no processor, or was busy for seconds finds its timers late, and what nodes sent
meanwhile unread. It must not take its own lateness for their silence. This goes by the real clock: a virtual one that
is set forward says nothing of who had time.
"""

import asyncio
import logging
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

EVERY_S = 0.25
LEAST_S = 0.5  # of lateness that counts; the least silence is 15 s
LOUD_S = 3.0  # ... and of which an operator should know


class Ear:
    """``listened`` is asked regularly, and before silence is judged: it says how long we were deaf since."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._at = monotonic()

    def listened(self) -> float:
        """Seconds since the last call beyond what is usual; 0 if they are few."""
        now = self._monotonic()
        late_s, self._at = now - self._at - EVERY_S, now
        if late_s < LEAST_S:
            return 0.0
        if late_s >= LOUD_S:
            log.warning("this process had no time for %.1f s: that counts as no node's silence", late_s)
        return late_s

    async def run(self, deaf: Callable[[float], None]) -> None:
        """Ask regularly until cancelled, and say so where we were deaf."""
        self._at = self._monotonic()
        while True:
            await asyncio.sleep(EVERY_S)
            if late_s := self.listened():
                deaf(late_s)
