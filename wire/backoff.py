"""The one back-off: exponential, capped, with jitter from a hash so that equal inputs wait equally.

The jitter comes after the cap: after a long outage a whole fleet waits at the cap, and must not come back at once.
"""

from hashlib import blake2b


def delay_s(attempt: int, key: str, *, first_s: float = 0.25, most_s: float = 15.0) -> float:
    """Seconds to wait before try ``attempt`` (1 is the first retry): by ``key`` from half of what is due to all."""
    base = min(most_s, first_s * 2.0 ** min(attempt - 1, 30))
    spread = int.from_bytes(blake2b(f"{key}/{attempt}".encode(), digest_size=2).digest(), "big") / 65535
    return base * (0.5 + 0.5 * spread)
