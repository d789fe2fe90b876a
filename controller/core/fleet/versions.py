"""Which version of what runs where: nodes by pool, so that a fleet of any size learns of one more node in no time."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from vocab.messages import NodeFacts

FEWEST = 3  # nodes that make one version the usual one


class Part(msgspec.Struct, frozen=True, order=True):
    """What has a version: ``driver`` and ``cuda`` of a node; ``vbios``, ``inforom`` and ``gsp`` of a board."""

    name: str
    board: str = ""


DRIVER = Part("driver")
JUDGED = frozenset({"driver", "vbios"})  # of which a pool should have one; InfoROMs differ by the board's making


def parts_of(facts: NodeFacts) -> dict[Part, str]:
    """What a node says of its versions; of a board that it has in several versions all of these, as one."""
    boards: dict[Part, set[str]] = defaultdict(set)
    for gpu in facts.gpus:
        for name, version in (("vbios", gpu.vbios), ("inforom", gpu.inforom), ("gsp", gpu.gsp)):
            if version:
                boards[Part(name, gpu.name or "")].add(version)
    found = {part: " + ".join(sorted(versions)) for part, versions in boards.items()}
    of_node = {DRIVER: facts.driver, Part("cuda"): facts.cuda}
    return {part: version for part, version in of_node.items() if version} | found


Usual = dict[Part, str]
Nodes = dict[str, None]


class Versions:
    """The nodes of each pool by version, kept as facts come in: a pool is not counted anew for one node."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[str | None, dict[Part, str]]] = {}
        self._nodes: dict[str | None, dict[Part, dict[str, Nodes]]] = defaultdict(dict)
        self._then: dict[str | None, Usual] = {}  # each pool's usual ones, as of the last judgement

    def put(self, node: str, pool: str | None, parts: dict[Part, str]) -> bool:
        """What a node runs now, and where; True if that changes anything that is judged."""
        before = self._of.get(node)
        if before == (pool, parts):
            return False
        if before is not None:
            for part, version in before[1].items():
                self._leave(node, before[0], part, version)
        self._of[node] = (pool, parts)
        for part, version in parts.items():
            self._nodes[pool].setdefault(part, {}).setdefault(version, {})[node] = None
        return before is None or before[0] != pool or _judged(before[1]) != _judged(parts)

    def _leave(self, node: str, pool: str | None, part: Part, version: str) -> None:
        versions = self._nodes[pool][part]
        del versions[version][node]
        if not versions[version]:
            del versions[version]
        if not versions:
            del self._nodes[pool][part]

    def of(self, node: str) -> dict[Part, str]:
        """What a node runs."""
        return self._of[node][1] if node in self._of else {}

    def usual(self, pool: str | None) -> Usual:
        """Of each judged part the version of more than half of a pool's nodes, if there are enough of them."""
        found = {part: usual_of(versions) for part, versions in self._nodes[pool].items() if part.name in JUDGED}
        return {part: version for part, version in found.items() if version is not None}

    def is_as_before(self, pool: str | None, usual: Usual) -> bool:
        """Whether these were a pool's usual versions when it was asked last; from now on they are."""
        same = self._then.get(pool) == usual
        self._then[pool] = usual
        return same

    def rows(self) -> Iterable[tuple[str | None, Part, dict[str, Nodes]]]:
        """Everything that is known: pool, part, and its versions with the nodes that run them."""
        for pool in sorted(self._nodes, key=lambda pool: pool or ""):
            for part in sorted(self._nodes[pool]):
                yield pool, part, self._nodes[pool][part]


def usual_of(versions: dict[str, Nodes]) -> str | None:
    """The version of more than half of at least three nodes."""
    counts = {version: len(nodes) for version, nodes in versions.items()}
    total = sum(counts.values())
    return next((each for each, count in counts.items() if total >= FEWEST and count * 2 > total), None)


def _judged(parts: dict[Part, str]) -> dict[Part, str]:
    return {part: version for part, version in parts.items() if part.name in JUDGED}
