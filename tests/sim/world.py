"""A fleet in virtual time: one core, its stored lines, and nodes that obey. Seconds pass when told to."""

from collections.abc import Sequence

from controller.core.core import Core
from controller.core.fleet.settings import Settings
from controller.core.fleet.stimuli import AnyStimulus, Asked, Declared, Deployment, Recalled
from tests.sim.node import Node
from vocab.lines import ActionLine, AnyLine, HoldLine, IncidentLine
from vocab.messages import NodeFacts
from vocab.states import ActionKind, ActionState

BEAT_S = 2.0
SELDOM_S = 12.0  # for hours in which little happens: as seldom as a node may report without being late


class Crash(Exception):
    """The controller is gone in the middle of a transaction."""


class World:
    """The clock starts at 1000 s. ``lines`` is what the controller's disk holds.

    ``crash_at``: once this many lines are stored the controller is killed; it comes back with exactly these,
    and nothing of the report that was being taken in was acknowledged.
    """

    make_core = Core

    def __init__(
        self, nodes: Sequence[Node], deployments: Sequence[Deployment] = (), settings: Settings | None = None
    ) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.deployments = list(deployments)
        self.settings = settings or Settings()
        self.now = 1000.0
        self.lines: list[AnyLine] = []
        self.stored_facts: dict[str, NodeFacts] = {}
        self.down = False
        self.crash_at: int | None = None
        self.core = self.make_core(self.settings)
        self._declare()

    def _declare(self) -> None:
        for deployment in self.deployments:
            self.tell(Declared(deployment=deployment))

    def tell(self, stimulus: AnyStimulus) -> list[AnyLine]:
        """One stimulus, its lines stored."""
        return self._store(self.core.take(stimulus, self.now))

    def _store(self, said: list[AnyLine]) -> list[AnyLine]:
        self.lines += said
        if self.crash_at is not None and len(self.lines) >= self.crash_at:
            raise Crash
        return said

    def ask(self, do: str, **more: str | bool) -> list[AnyLine]:
        """A person's order."""
        return self.tell(Asked(do=do, by="ada", **more))  # type: ignore[arg-type]

    def restart(self, keep: int | None = None) -> None:
        """A new controller over the first ``keep`` stored lines (all of them)."""
        self.lines = self.lines[:keep]
        self.core = self.make_core(self.settings)
        for line in self.lines:
            self.core.fold(line)
        self._store(self.core.recall([Recalled(facts=facts) for facts in self.stored_facts.values()], self.now))
        self._declare()
        for node in self.nodes.values():
            node.forget_connection()

    def beat(self, *, twice: bool = False) -> None:
        """Every node reports once (``twice``: the answer was lost, it reports the same again) and converges."""
        for node in self.nodes.values():
            if not self.down:
                for _ in range(2 if twice else 1):
                    for stimulus in node.report(self.now):
                        self.tell(stimulus)
                if not node.silent:
                    self.stored_facts[node.name] = self.core.lasting(node.facts())
                node.acknowledged()
                node.obey(self.core.desired(node.name))
            node.live(self.now)

    def run(self, seconds: float, *, twice: bool = False, every_s: float = BEAT_S) -> None:
        """Let time pass, with a report of every node each ``every_s`` and the core's own deadlines between."""
        end = self.now + seconds
        while self.now < end:
            try:
                self._run_beat(min(self.now + every_s, end), twice=twice)
            except Crash:
                keep, self.crash_at = self.crash_at, None
                self.restart(keep)

    def _run_beat(self, after: float, *, twice: bool) -> None:
        while not self.down and (due := self.core.next_deadline()) is not None and due <= after:
            self.now = max(self.now, due)
            self._store(self.core.tick(self.now))
        self.now = after
        self.beat(twice=twice)

    # -- what tests ask -------------------------------------------------------------------------------

    def actions(self, *kinds: ActionKind) -> list[ActionLine]:
        """The action lines of these kinds."""
        return [line for line in self.lines if isinstance(line, ActionLine) and (not kinds or line.of in kinds)]

    def ordered(self, *kinds: ActionKind) -> list[ActionLine]:
        """The orders of these kinds."""
        return [line for line in self.actions(*kinds) if line.state is ActionState.ORDERED]

    def placed(self, owner: str = "policy") -> list[HoldLine]:
        """The holds that an owner placed."""
        return [
            line for line in self.lines if isinstance(line, HoldLine) and (line.op, line.owner) == ("placed", owner)
        ]

    def opened(self) -> list[IncidentLine]:
        """The incidents that were opened."""
        return [line for line in self.lines if isinstance(line, IncidentLine) and line.state == "open"]

    def gpu(self, uuid: str) -> object:
        """A GPU's view."""
        return next(gpu for node in self.core.view().nodes for gpu in node.gpus if gpu.uuid == uuid)

    def replica_on(self, uuid: str) -> str | None:
        """The replica that is placed on a GPU."""
        return next((replica.replica for replica in self.core.view().replicas if uuid in replica.gpus), None)
