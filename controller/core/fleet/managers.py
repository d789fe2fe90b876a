"""Managers: Slurm, Kubernetes and others that place and end work which Corral did not start, as they last spoke.

It is heard, not folded: after a restart they say it again, and until one that manages nodes has answered, nobody knows
which nodes are its own. What is not known is waited for.
"""

from collections import defaultdict
from collections.abc import Iterator

from controller.core.fleet.stimuli import Managed, Managing
from controller.core.fleet.views import ManagerView


class Managers:
    """By name, and by node. The dictionaries are for reading."""

    def __init__(self) -> None:
        self.known: dict[str, Managing] = {}
        self._at: dict[str, dict[str, Managed]] = defaultdict(dict)  # node -> manager -> its word
        self._told: set[str] = set()  # managers that have answered in this life
        self._marked_at: dict[tuple[str, str], float] = {}  # (manager, name of a place): when our mark was last seen

    def hear(self, said: Managing) -> bool:
        """How a manager is; True if that is news."""
        before = self.known.get(said.by)
        self.known[said.by] = said
        if said.ok:
            self._told.add(said.by)
        return before != said

    def learn(self, said: Managed, now: float) -> bool:
        """What a manager says of a node; True if that is news."""
        for name in said.ours:
            self._marked_at[said.by, name] = now
        before = self._at[said.node].get(said.by)
        if said.gone:
            self._at[said.node].pop(said.by, None)
        else:
            self._at[said.node][said.by] = said
        return before is not None if said.gone else before != said

    def of(self, node: str) -> list[Managed]:
        """What those say that manage a node as a whole, each once."""
        return list(self._at[node].values()) if node in self._at else []

    def on(self, node: str, by: str) -> Managed | None:
        """What one manager says of a node; None if it is not its own, or not known yet."""
        return self._at[node].get(by) if node in self._at else None

    def answers(self, by: str) -> bool:
        """Whether a manager answers now."""
        return by in self.known and self.known[by].ok

    def marked_at(self, by: str, place: str) -> float:
        """When our mark was last seen there in this life; 0 if it was not."""
        return self._marked_at.get((by, place), 0.0)

    def unheard(self) -> list[Managing]:
        """The managers of nodes that have not answered since the start: any node may be theirs."""
        return [one for one in self.known.values() if one.nodes and one.by not in self._told]

    def may_own(self, node: str) -> bool:
        """Whether a node is a manager's, as far as anybody knows: then nothing of ours is started there."""
        return bool(self.of(node) or self.unheard())

    def nodes_of(self, by: str) -> list[str]:
        """The nodes that are a manager's own."""
        return [node for node, said in self._at.items() if by in said]

    def views(self) -> Iterator[ManagerView]:
        """How each manager is."""
        for one in self.known.values():
            said = [self._at[node][one.by] for node in self.nodes_of(one.by)]
            yield ManagerView(
                name=one.by,
                ok=one.ok,
                why="" if one.ok else one.why,
                nodes=len(said),
                closed=sum(bool(each.ours) for each in said),
                others=sum(bool(each.other) for each in said),
            )
