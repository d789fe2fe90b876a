"""Who plays: the nodes of a recording, which of them a line is about, and replicas that the play named first.

A replica that the core orders gets its name from the core. A recording that was made elsewhere shows the replacement
under another name: the first unknown replica of the deployment on the ordered GPUs is the one that was ordered.
Within the play it bears the core's name; lines are printed with the recording's.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from corral.replay.outcomes import STARTED
from corral.replay.watched import Watched
from vocab.lines import ActionLine
from vocab.observations import AnyObservation, Observation, ReplicaSeen
from vocab.states import ActionKind, Level


class Cast:
    """All nodes, in the order in which they first appeared, and all replicas by their deployment."""

    def __init__(self) -> None:
        self.nodes: dict[str, Watched] = {}
        self.names: dict[str, str] = {}  # the recording's name -> the play's
        self.levels: dict[str, Level] = {}  # by node, where a pool has one
        self._wanted: dict[str, int] = {}
        self._seen: dict[str, set[str]] = defaultdict(set)  # deployment -> replicas
        self._owner: dict[str, Watched] = {}  # of a GPU or a replica
        self._untold: dict[str, None] = {}  # nodes whose list of replicas was not called whole

    def node(self, name: str) -> Watched:
        """The node of this name, known from now on."""
        known = self.nodes.get(name)
        if known is None:
            known = self.nodes[name] = Watched(name, self.levels.get(name, Level.REPAIR))
            self._untold[name] = None
        return known

    def node_of(self, seen: Observation) -> Watched | None:
        """The node that a line is of: it says so, or names a GPU or a replica of it, or there is only one."""
        if seen.node is not None:
            return self.node(seen.node)
        for name in (getattr(seen, "gpu", None), getattr(seen, "replica", None)):
            if name in self._owner:
                return self._owner[name]
        return next(iter(self.nodes.values())) if len(self.nodes) == 1 else None

    def learn(self, node: Watched, names: Iterable[str]) -> None:
        """These GPUs or replicas are of this node."""
        for name in names:
            self._owner[name] = node

    # -- whether all replicas were shown ----------------------------------------------------------------

    def want(self, deployment: str, replicas: int) -> None:
        """A deployment was declared."""
        self._wanted[deployment] = replicas

    def complete(self) -> Iterator[Watched]:
        """The nodes whose list of replicas is whole, once each: as many replicas as declared were seen somewhere.

        Where replicas are seen and no deployment was declared, none is awaited.
        """
        if not self._untold or not (self._wanted or self._seen):
            return
        if all(len(self._seen[name]) >= wanted for name, wanted in self._wanted.items()):
            untold, self._untold = self._untold, {}
            yield from (self.nodes[name] for name in untold)

    def told(self) -> list[Watched]:
        """The nodes whose list was called whole."""
        return [node for node in self.nodes.values() if node.name not in self._untold]

    # -- replicas that bear two names -------------------------------------------------------------------

    def named(self, seen: AnyObservation, node: Watched, orders: Iterable[ActionLine]) -> AnyObservation:
        """The observation, with the play's name of its replica."""
        name: str | None = getattr(seen, "replica", None)
        if name is None:
            return seen
        if isinstance(seen, ReplicaSeen) and name not in self._seen[seen.deployment or ""]:
            self._meet(seen, orders)
            self._owner[name] = node
        known: Any = self.names.get(name)
        return seen if known is None else replace(seen, replica=known)

    def _meet(self, seen: ReplicaSeen, orders: Iterable[ActionLine]) -> None:
        """A replica is seen for the first time: it may be one that was ordered."""
        for order in orders:
            if order.subject.replica == seen.replica:
                break
            taken = order.subject.replica in self.names.values()
            if order.deployment == seen.deployment and _is_for(order, seen) and not taken:
                self.names[seen.replica] = order.subject.replica or ""
                break
        self._seen[seen.deployment or ""].add(seen.replica)

    def as_recorded(self) -> dict[str, str]:
        """The play's names -> the recording's."""
        return {name: recorded for recorded, name in self.names.items()}


def _is_for(order: ActionLine, seen: ReplicaSeen) -> bool:
    """Whether the replica runs where the order wanted one."""
    if order.of is not ActionKind.START_REPLICA or order.state not in STARTED or order.target is None:
        return False
    return sorted(order.target.gpus) == sorted({member.gpu for member in seen.members} or seen.gpus)
