"""What one caller may take of us: so many requests a second, so many bytes, so many seconds, so many streams.

The numbers leave room for 12,500 nodes. An agent asks twice at every change and else once in two seconds; a page or
a gateway once a second. Each has its own bucket, by token and address: one that runs wild stops itself alone.
"""

import math

from aiohttp import web

from vocab.clock import Clock

PER_S = 50.0  # of one token from one address: fifty times what an agent asks for
BURST = 200.0  # an agent that comes back empties its spool in batches, one after the other
MOST_BUCKETS = 100_000  # 12,500 nodes with agent and gateway, and people; a bucket is 200 bytes
BODY_BYTES = 256 * 1024  # of an order of a person; batches of agents may be larger
ANSWER_S = 30.0  # for a request to come whole and be answered; agents give up after 10 s
STREAMS = 1000  # open streams of changes: each may hold 2000 lines


class Rates:
    """A bucket of tokens for each key, filled by time. ``per_s`` 0: no limit."""

    def __init__(self, clock: Clock, *, per_s: float = PER_S, burst: float = BURST) -> None:
        self._clock = clock
        self._per_s = per_s
        self._burst = burst
        self._buckets: dict[tuple[str, str], tuple[float, float]] = {}  # what is left, and when that was so

    def take(self, key: tuple[str, str]) -> None:
        """Count one request. Raises HTTPTooManyRequests, which says when there is room again."""
        if not self._per_s:
            return
        now = self._clock.monotonic()
        left, at = self._buckets.get(key, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_s)
        if left < 1.0:
            raise too_many(f"more than {self._per_s:g} requests a second", math.ceil((1.0 - left) / self._per_s))
        if len(self._buckets) >= MOST_BUCKETS and key not in self._buckets:
            self._forget(now)
        self._buckets[key] = (left - 1.0, now)

    def _forget(self, now: float) -> None:
        """Drop the buckets that are full again; if all are in use, everybody begins anew."""
        full_s = self._burst / self._per_s
        self._buckets = {key: each for key, each in self._buckets.items() if now - each[1] < full_s}
        if len(self._buckets) >= MOST_BUCKETS:
            self._buckets.clear()


def too_many(what: str, after_s: int) -> web.HTTPTooManyRequests:
    """The answer to who asks too often."""
    return web.HTTPTooManyRequests(reason=f"{what}; come again in {after_s} s", headers={"Retry-After": str(after_s)})
