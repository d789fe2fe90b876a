"""The free GPUs, by node and by how many a node has: a place is found without a look at each of them."""

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache

from controller.core.fleet.names import spread
from controller.core.fleet.nodes import Gpu
from controller.core.fleet.togetherness import Apart, Wide, widest
from vocab.messages import NodeFacts


class Free:
    """GPUs that take work, as of the last look. Nodes with equally many stand on a ring, by a hash of their names."""

    def __init__(self, spares: dict[str, int]) -> None:
        self._spares = spares  # pool -> how many only replacements take
        self._where: dict[str, tuple[str, str | None]] = {}  # GPU -> its node and pool
        self._at: dict[str, dict[str, Gpu]] = defaultdict(dict)
        self._rings: dict[int, list[tuple[str, str]]] = defaultdict(list)  # count -> marks with their nodes, sorted
        self._of_pool: Counter[str | None] = Counter()
        self._widest: dict[str, tuple[NodeFacts, Wide]] = {}  # node -> by which facts, and how wide its groups are
        self._wide: Counter[Wide] = Counter()

    def put(self, gpu: Gpu, pool: str | None, facts: NodeFacts | None) -> None:
        """It is free. ``facts``: of its node."""
        self._learn(facts)
        uuid = gpu.identity.uuid
        self.drop(uuid)
        self._where[uuid] = gpu.node, pool
        self._of_pool[pool] += 1
        self._leave(gpu.node)
        self._at[gpu.node][uuid] = gpu
        self._join(gpu.node)

    def drop(self, uuid: str) -> None:
        """It is not, or not any more."""
        known = self._where.pop(uuid, None)
        if known is None:
            return
        node, pool = known
        self._of_pool[pool] -= 1
        self._leave(node)
        del self._at[node][uuid]
        self._join(node)

    def _learn(self, facts: NodeFacts | None) -> None:
        if facts is None or self._widest.get(facts.node, (None,))[0] is facts:
            return
        if facts.node in self._widest:
            self._wide[self._widest[facts.node][1]] -= 1
        self._widest[facts.node] = facts, widest(facts.gpus, facts.islands)
        self._wide[self._widest[facts.node][1]] += 1

    def least_apart(self, wanted: int) -> Apart:
        """How far apart so many are at least, on the best of all nodes."""
        wides = [wide for wide, count in self._wide.items() if count]
        return min(((wanted > island, wanted > numa) for island, numa in wides), default=(False, False))

    def _leave(self, node: str) -> None:
        if self._at[node]:
            ring = self._rings[len(self._at[node])]
            del ring[bisect_left(ring, (mark(node), node))]

    def _join(self, node: str) -> None:
        if self._at[node]:
            insort(self._rings[len(self._at[node])], (mark(node), node))

    def at(self, node: str) -> list[Gpu]:
        """Those of a node."""
        return list(self._at[node].values()) if node in self._at else []

    def keeps(self, pool: str | None, wanted: int) -> bool:
        """Whether a pool would have fewer than its spares left if so many were taken."""
        kept = self._spares.get(pool or "", 0)
        return kept > 0 and self._of_pool[pool] - wanted < kept

    def kept(self) -> int:
        """How many of the free GPUs are spares."""
        return sum(min(kept, self._of_pool[pool]) for pool, kept in self._spares.items())

    def nodes(self, wanted: int, name: str) -> Iterator[str]:
        """The nodes with at least so many: those with the fewest first, of equal ones on from a name's mark."""
        for count in sorted(count for count, ring in self._rings.items() if count >= wanted and ring):
            ring = self._rings[count]
            start = bisect_left(ring, (mark(name), ""))
            for place in range(len(ring)):
                yield ring[(start + place) % len(ring)][1]


@lru_cache(maxsize=32_768)
def mark(name: str) -> str:
    """Where a node or a replica stands on the ring."""
    return spread(name)


def way(name: str, node: str) -> tuple[bool, str, str]:
    """How far on from a name's mark a node stands, to compare."""
    return mark(node) < mark(name), mark(node), node
