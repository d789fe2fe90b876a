"""Which replica takes a request: least outstanding, and where loads are near equal, the one that saw the prefix.

Pure. Affinity is rendezvous hashing: each replica has a rank for each prefix, so that a replica that comes or
goes moves only the prefixes that it gains or loses.
"""

from collections.abc import Collection, Mapping
from hashlib import blake2b

import msgspec

from engine.gateway.table import Entry, Routable

PREFIX_BYTES = 512  # of the prompt's JSON: a system prompt and the first question, not the whole history
NEAR = 1  # requests: a warm prefix cache is worth waiting behind that many more
PANIC_COST = 4  # requests: a fenced replica is used for what the others cannot take


class Pick(msgspec.Struct, frozen=True):
    """Where a request goes; ``panic``: the replica is fenced and must be told that it is needed."""

    entry: Entry
    panic: bool = False


def pick(
    among: Routable, outstanding: Mapping[str, int], prefix: bytes, tried: Collection[str], now: float
) -> Pick | None:
    """The replica for a request with this prefix that was not tried yet, or None if there is none."""
    picks = [Pick(entry) for entry in among.ready] + [Pick(entry, panic=True) for entry in among.fenced]
    picks = [each for each in picks if each.entry.replica not in tried]
    picks = [each for each in picks if not each.entry.doubted(now)] or picks
    if not picks:
        return None

    def cost(each: Pick) -> int:
        return outstanding.get(each.entry.replica, 0) + (PANIC_COST if each.panic else 0)

    least = min(map(cost, picks))
    near = [each for each in picks if cost(each) <= least + NEAR]
    return max(near, key=lambda each: _rank(prefix, each.entry.replica))


def _rank(prefix: bytes, replica: str) -> bytes:
    return blake2b(prefix, key=replica.encode()[:64], digest_size=8).digest()
