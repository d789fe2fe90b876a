"""The play: time passes over the judges of all nodes and one core. Nobody executes orders.

What a node says reaches the core at once, unless its uplink is down: then it waits there, as in the
agent's spool. What becomes of an order is what the recording shows; else it times out.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from controller.core.core import Core
from controller.core.settings import Settings
from controller.core.stimuli import (
    AnyStimulus,
    Arrived,
    Asked,
    Declared,
    Deployment,
    Reached,
    Recalled,
    Reported,
    Stimulus,
)
from controller.core.views import View
from corral.replay.link import Link
from corral.replay.watched import Watched
from vocab.lines import AnyLine, EventLine, FinalLine
from vocab.messages import ActionItem
from vocab.observations import (
    ActionSeen,
    AnyObservation,
    DeploymentSeen,
    End,
    FleetShape,
    NodeSeen,
    Operator,
    Reach,
    ReplicaSeen,
    Report,
    Restart,
    Uplink,
)
from vocab.states import ActionState, Level

ACCEPTED = "accepted"  # a recording's word for an order that its node has begun


class Play:
    """One replay. ``lines`` grows as time passes; ``stray`` counts node-local lines that name no node."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._core = Core(settings)
        self._nodes: dict[str, Watched] = {}
        self._levels: dict[str, Level] = {}
        self._deployments: dict[str, Deployment] = {}
        self._links: dict[str, Link] = defaultdict(Link)
        self._now = 0.0
        self.lines: list[AnyLine] = []
        self.stray = 0
        self._acts: dict[type, Callable[[Any], None]] = {
            DeploymentSeen: self._declare,
            FleetShape: self._shape,
            Operator: self._ask,
            Reach: self._reach,
            Report: self._report,
            ActionSeen: self._act,
            Restart: self._restart,
            Uplink: self._uplink,
            End: lambda _: None,  # time has gone on already
        }

    # -- time -------------------------------------------------------------------------------------------

    def until(self, at: float) -> None:
        """Let everything happen that is due before ``at``. What is due at this moment waits for what is seen then."""
        while (due := self._next_deadline()) is not None and due < at:
            self._now = max(self._now, due)
            self._let_due_happen()
            if self._next_deadline() == due:
                break  # it waits for something else than time
        self._now = max(self._now, at)

    def _let_due_happen(self) -> None:
        for node in self._nodes.values():
            self._say_all(node, node.due(self._now))
        self.lines += self._core.tick(self._now)

    def _next_deadline(self) -> float | None:
        times = [node.judge.next_deadline() for node in self._nodes.values()]
        return min((time for time in (*times, self._core.next_deadline()) if time is not None), default=None)

    def end(self) -> list[FinalLine]:
        """The end of the recording: the last words of the judges, then where everything stands."""
        self._let_due_happen()
        for node in self._nodes.values():
            self._say_all(node, node.close(self._now))
        *subjects, fleet = self._core.final(self._now)
        events = [line.event for line in self.lines if isinstance(line, EventLine)]
        counts = {
            **fleet.counts,
            "records_lost": sum(_lost(event.fields) for event in events if event.code == "kernel_records_lost"),
            "unparsed": sum(node.unparsed for node in self._nodes.values()),
        }
        return [*subjects, replace(fleet, counts=counts)]

    def view(self) -> View:
        """The fleet as it stands."""
        return self._core.view()

    # -- observations -----------------------------------------------------------------------------------

    def see(self, observation: AnyObservation) -> None:
        """Take one observation in, at its time."""
        self.until(observation.at)
        act = self._acts.get(type(observation))
        if act is not None:
            act(observation)
            return
        node = self._node_of(observation)
        if node is None:
            self.stray += 1
            return
        self._say_all(node, node.told(observation))
        if isinstance(observation, ReplicaSeen | NodeSeen):
            self._call_whole()

    def _call_whole(self) -> None:
        """A recording shows replicas one by one; once as many as declared were seen, no node has more to tell.

        Until then (30 s at most, the core's own patience) nothing is started that only was not mentioned yet.
        """
        seen = Counter(status.deployment for node in self._nodes.values() for status in node.statuses.values())
        wanted = self._deployments.values()
        if wanted and all(seen[deployment.name] >= deployment.replicas for deployment in wanted):
            for node in self._nodes.values():
                self._say_all(node, [node.replicas(whole=True)])

    def _node_of(self, observation: AnyObservation) -> Watched | None:
        name = observation.node
        if name is None and len(self._nodes) == 1:
            return next(iter(self._nodes.values()))
        if name is None:
            return None
        return self._nodes.setdefault(name, Watched(name, self._levels.get(name, Level.REPAIR)))

    def _say_all(self, node: Watched, stimuli: Iterable[Stimulus]) -> None:
        for stimulus in stimuli:
            if self._links[node.name].passes(stimulus):
                self._tell(stimulus)

    def _tell(self, stimulus: Stimulus) -> None:
        assert isinstance(stimulus, AnyStimulus)
        self.lines += self._core.take(stimulus, self._now)

    def _declare(self, seen: DeploymentSeen) -> None:
        if seen.managed_by != "corral":
            return  # who manages it starts it, too
        deployment = Deployment(
            name=seen.deployment,
            replicas=seen.replicas,
            gpus_per_replica=seen.gpus_per_replica,
            min_ready=min(1, seen.replicas) if seen.min_ready is None else seen.min_ready,
            gpus=seen.gpus,
            engine=seen.engine or "torch",
            prestop_s=seen.stop.get("prestop_s", 0.0),
            drain_s=seen.stop.get("drain_s", 120.0),
            kill_s=seen.stop.get("kill_s", 10.0),
        )
        self._deployments[deployment.name] = deployment
        self._tell(Declared(deployment=deployment))
        self._call_whole()

    def _shape(self, shape: FleetShape) -> None:
        """Pools give their nodes a level."""
        for pool in shape.pools.values():
            for name in pool.get("nodes", ()) if pool.get("level") else ():
                self._levels[name] = Level(pool["level"])
                if name in self._nodes:
                    self._nodes[name].level = self._levels[name]
                    self._say_all(self._nodes[name], self._nodes[name].greeting())

    def _ask(self, order: Operator) -> None:
        self._tell(
            Asked(
                do=order.do,
                by=order.by,
                reason=order.reason,
                owner=order.owner,
                force=order.force,
                gpu=order.gpu,
                node=order.node,
                deployment=order.deployment,
                incident=order.incident,
            )
        )

    def _reach(self, reach: Reach) -> None:
        self._tell(Reached(of=reach.of, by=reach.by, ok=reach.ok))

    def _report(self, report: Report) -> None:
        node = self._node_of(report)
        if node is not None and self._links[node.name].reaches:
            self._tell(Reported(node=node.name))

    def _act(self, seen: ActionSeen) -> None:
        """What became of an order: the oldest one of this kind on this subject that has not ended."""
        if seen.by != "corral":
            return
        state = ActionState.RUNNING if seen.state == ACCEPTED else ActionState(seen.state)
        for action in self._core.view().actions:
            at = action.subject
            meant = (
                at.gpu == seen.gpu if seen.gpu else at.replica == seen.replica if seen.replica else at.node == seen.node
            )
            if action.of == seen.of and meant and action.state in {ActionState.ORDERED, ActionState.RUNNING}:
                item = ActionItem(
                    at=seen.at, node=seen.node or "", id=action.id, of=action.of, token=action.token, state=state,
                    error=seen.error,
                )  # fmt: skip
                self._tell(Arrived(node=item.node, item=item))
                return

    def _restart(self, restart: Restart) -> None:
        """A new controller folds what its disk holds, or begins a new epoch with an empty one."""
        if restart.of == "agent" and not restart.kept:
            node = self._node_of(restart)
            if node is not None:
                node.forget()
        if restart.of != "controller":
            return
        if restart.kept:
            self._core = Core(self._settings)
            for line in self.lines:
                self._core.fold(line)
        else:
            self._settings = replace(self._settings, epoch=self._settings.epoch + 1)
            self._core = Core(self._settings)
        for node in self._nodes.values() if restart.kept else ():
            if node.seen is not None:
                self._tell(Recalled(facts=node.facts(node.seen)))
        for deployment in self._deployments.values():
            self._tell(Declared(deployment=deployment))
        for node in self._nodes.values():
            self._say_all(node, node.greeting())
        self._call_whole()

    def _uplink(self, uplink: Uplink) -> None:
        node = self._node_of(uplink)
        if node is not None:
            for stimulus in self._links[node.name].turn(uplink.state):
                self._tell(stimulus)


def _lost(fields: dict[str, object]) -> int:
    first, last = fields.get("from"), fields.get("to")
    return last - first + 1 if isinstance(first, int) and isinstance(last, int) else 0
