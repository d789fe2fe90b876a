"""Which driver runs where: counts by pool, so that a fleet of any size learns of one more node in no time."""

from collections import Counter, defaultdict

FEWEST = 3  # nodes that make one version the usual one


class Drivers:
    """How many nodes of each pool run which driver, kept as facts come in: a pool is not counted anew for one node."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[str | None, str]] = {}  # node -> pool and driver
        self._counts: dict[str | None, Counter[str]] = defaultdict(Counter)
        self._then: dict[str | None, str | None] = {}  # each pool's usual one, as of the last judgement

    def put(self, node: str, pool: str | None, driver: str | None) -> None:
        """What a node runs now, and where; None while no driver is loaded."""
        before = self._of.pop(node, None)
        if before is not None:
            self._counts[before[0]][before[1]] -= 1
        if driver is not None:
            self._of[node] = (pool, driver)
            self._counts[pool][driver] += 1

    def usual(self, pool: str | None) -> str | None:
        """The driver of more than half of a pool's nodes, if there are enough of them."""
        counts = self._counts[pool]
        driver, count = max(counts.items(), key=lambda each: each[1], default=("", 0))
        total = counts.total()
        return driver if total >= FEWEST and count * 2 > total else None

    def driver(self, node: str) -> str | None:
        """What a node runs."""
        found = self._of.get(node)
        return found[1] if found is not None else None

    def is_as_before(self, pool: str | None, usual: str | None) -> bool:
        """Whether this was a pool's usual driver when it was asked last; from now on it is."""
        same = pool in self._then and self._then[pool] == usual
        self._then[pool] = usual
        return same
