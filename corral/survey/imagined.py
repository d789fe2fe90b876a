"""The fleet's past through the controller's core: a rehearsal that keeps what it decided, and knows of boots."""

from collections.abc import Iterable

from controller.core.fleet.settings import Settings
from controller.core.rehearsal import BEFORE_S, Rehearsal, Scene, Told
from vocab.events import Event
from vocab.lines import ActionLine, AnyLine, HoldLine, IncidentLine
from vocab.messages import EventItem, NodeFacts

Kept = HoldLine | ActionLine | IncidentLine


class Imagined(Rehearsal):
    """``kept``: the holds, actions and incidents that follow, in order."""

    def __init__(self, settings: Settings, scene: Scene) -> None:
        super().__init__(settings, scene)
        self.kept: list[Kept] = []

    def play(self, told: Iterable[tuple[float, Event | NodeFacts]]) -> "Imagined":
        """Everything that nodes said, in order, and what the last of it leads to."""
        for at, said in told:
            if isinstance(said, NodeFacts):
                self.boot(at, said)
            else:
                self.hear(Told(at, EventItem(said)))
        self.end()
        return self

    def boot(self, at: float, facts: NodeFacts) -> None:
        """The node is in another boot from then on."""
        if self._now is None:
            self._begin(at - BEFORE_S)
        self._until(at)
        self._facts[facts.node] = facts
        self._report(facts)

    def _take(self, lines: Iterable[AnyLine]) -> None:
        lines = list(lines)
        self.kept += [line for line in lines if isinstance(line, HoldLine | ActionLine | IncidentLine)]
        super()._take(lines)
