"""Pauses: where people have stopped harmful automation: everywhere, in pools, on nodes. The ledger keeps them."""

from vocab.lines import NoteLine


class Pauses:
    """The note of each pause that stands."""

    def __init__(self) -> None:
        self.everywhere: NoteLine | None = None
        self.pools: dict[str, NoteLine] = {}
        self.nodes: dict[str, NoteLine] = {}

    def fold(self, line: NoteLine) -> None:
        """One began, or ended."""
        node, begins = line.subject.node, line.code == "paused"
        if node is None and line.pool is None:
            self.everywhere = line if begins else None
            return
        name = line.pool or node or ""
        scoped = self.pools if line.pool is not None else self.nodes
        scoped.pop(name, None)
        if begins:
            scoped[name] = line
