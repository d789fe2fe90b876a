"""The odd one out: which GPU of a replica is in another state than its peers. Pure, of one moment.

In a hung collective all members that arrived spin (100 % utilization, next to no SM activity, idle power); the one
that never arrived is idle, or works on alone. Two or more odd ones are a weaker sign, and half of them none.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from vocab.readings import Readings

FEWEST = 3  # of two that differ nobody can say which is odd
BUSY, IDLE = 0.95, 0.05
SM_BUSY = 0.10  # hung collectives still show 0.06: a few warps spin
MOST_ODD = 0.25  # of the members; more than that have no peers to differ from


def suspects(readings: Mapping[str, Readings | None], members: Sequence[str]) -> list[tuple[str, str]]:
    """(GPU, confidence) of the members that differ from the rest: one of them medium, more low, none if unclear."""
    states = {gpu: state for gpu in members if (state := state_of(readings.get(gpu))) is not None}
    if len(states) < FEWEST:
        return []
    ((usual, _),) = Counter(states.values()).most_common(1)
    odd = [gpu for gpu, state in states.items() if state != usual]
    if len(odd) == 1:
        return [(odd[0], "medium")]
    return [(gpu, "low") for gpu in odd] if len(odd) <= MOST_ODD * len(states) else []


def state_of(readings: Readings | None) -> str | None:
    """``works``, ``spins`` or ``idle``; None where the readings do not tell."""
    if readings is None:
        return None
    busy, active = readings.utilization_ratio, readings.sm_active_ratio
    if active is not None and active >= SM_BUSY:
        return "works"
    if busy is None:
        return None
    if busy >= BUSY:
        return "works" if active is None and _draws(readings) else "spins"
    return "idle" if busy <= IDLE else "works"


def _draws(readings: Readings) -> bool:
    """Whether the power says that real work is done, where SM activity is not told."""
    power, limit = readings.power_w, readings.power_limit_w
    return power is not None and bool(limit) and power >= 0.3 * (limit or 1.0)
