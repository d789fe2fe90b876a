"""After a start: whom we wait for before anything harmful is done, and before what seems to be missing is started."""

from collections.abc import Mapping

from controller.core.fleet.nodes import Node
from controller.core.fleet.settings import COLD_START_S
from vocab.lines import Subject
from vocab.states import NodeState

MISSING_AT_START = 0.1  # of the nodes that were live, this part may stay silent (one node always)


class Patience:
    """Of one life of the controller. It shares the fleet's nodes and looks only at those that are waited for."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self._nodes = nodes
        self._began_at: float | None = None
        self._awaited: frozenset[str] = frozenset()  # nodes that were live before this life
        self._silent: dict[str, None] = {}  # those of them that have not been heard in it
        self._untold: dict[str, None] = {}  # nodes whose replicas are not known yet

    def begin(self, words: Mapping[Subject, str], now: float) -> bool:
        """The first moment of this life, once: nodes that were live are waited for. True if it is that moment."""
        if self._began_at is not None:
            return False
        self._began_at = now
        self._silent = {s.node: None for s, word in words.items() if s.node is not None and word == NodeState.LIVE}
        self._awaited = frozenset(self._silent)
        return True

    def hear(self, node: str) -> None:
        """It has said something."""
        self._silent.pop(node, None)

    def expect(self, node: str) -> None:
        """Its list of replicas is to come."""
        self._untold[node] = None

    def is_settled(self, now: float) -> bool:
        """Whether the start is over: nodes that were live have been heard, or waited for long enough."""
        if not self._silent:
            return True
        return self._has_waited(now) and len(self._silent) <= max(1, int(MISSING_AT_START * len(self._awaited)))

    def knows(self, node: str, now: float) -> bool:
        """Whether what runs on a node is known: it said so, is new to us, or was waited for long enough."""
        known = self._nodes.get(node)
        return node not in self._awaited or (known is not None and known.has_told) or self._has_waited(now)

    def may_place(self, now: float) -> bool:
        """Whether what runs anywhere is known well enough to start more of it."""
        while self._untold:
            name = next(iter(self._untold))
            known = self._nodes[name]
            if not known.has_told and now < max(self._began_at or 0.0, known.facts_at or 0.0) + COLD_START_S:
                return False
            del self._untold[name]
        return bool(self._nodes)

    def _has_waited(self, now: float) -> bool:
        return self._began_at is not None and now >= self._began_at + COLD_START_S
