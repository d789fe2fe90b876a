"""The play: time passes over the judges of all nodes and one core. Nobody executes orders.

What a node says reaches the core at once, unless its uplink is down: then it waits there, as in the
agent's spool. What becomes of an order is what the recording shows; else it times out.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from agent.judge.judge import SET_HEALTHY
from controller.core.core import Core
from controller.core.fleet.settings import Settings
from controller.core.fleet.stimuli import (
    AnyStimulus,
    Arrived,
    Asked,
    Declared,
    Deployment,
    NodeReported,
    Reached,
    Recalled,
    Reported,
    Shaped,
    Stimulus,
)
from controller.core.fleet.views import View
from corral.replay import outcomes
from corral.replay.cast import Cast
from corral.replay.link import Link
from corral.replay.pauses import Pauses
from corral.replay.schedule import Schedule
from corral.replay.watched import Watched
from vocab.lines import ActionLine, AnyLine, EventLine, FinalLine
from vocab.messages import ActionItem, FenceItem
from vocab.observations import (
    ActionSeen,
    AnyObservation,
    Check,
    ClockStep,
    DeploymentSeen,
    End,
    FleetShape,
    GpuSample,
    NodeSeen,
    Operator,
    Reach,
    Report,
    Restart,
    Uplink,
)
from vocab.states import TERMINAL_ACTIONS, Level

OTHER = "other"  # ``by`` of what people or programs other than Corral did


class Play:
    """One replay. ``lines`` grows as time passes; ``stray`` counts node-local lines that name no node."""

    def __init__(self, settings: Settings, pauses: Pauses | None = None) -> None:
        self._settings = settings
        self._core = Core(settings)
        self._pauses = pauses or {}
        self._orders: dict[str, ActionLine] = {}  # actions that have not ended
        self._deployments: dict[str, Deployment] = {}
        self._shape = Shaped()
        self._links: dict[str, Link] = defaultdict(Link)
        self._schedule = Schedule()
        self._unsettled: dict[str, Watched] = {}
        self._now = float("-inf")
        self.cast = Cast()
        self.lines: list[AnyLine] = []
        self.stray = 0
        self._acts: dict[type, Callable[[Any], None]] = {
            DeploymentSeen: self._declare,
            FleetShape: self._divide,
            Operator: self._ask,
            Reach: self._reach,
            Report: self._report,
            ActionSeen: self._act,
            Restart: self._restart,
            Uplink: self._uplink,
            ClockStep: self._clock,
            End: lambda _: None,  # time has gone on already
        }

    # -- time -------------------------------------------------------------------------------------------

    def until(self, at: float) -> None:
        """Let everything happen that is due before ``at``. What is due at this moment waits for what is seen then."""
        if at <= self._now:
            return
        self._call_whole()
        self._settle()
        while (due := self._first_due()) is not None and due < at:
            self._now = max(self._now, due)
            self._let_due_happen()
        self._now = at

    def _first_due(self) -> float | None:
        due, core_due = self._schedule.first(), self._core.next_deadline()
        return due if core_due is None else core_due if due is None else min(due, core_due)

    def _let_due_happen(self) -> None:
        now = self._now
        for name in self._schedule.take(now):
            node = self.cast.nodes[name]
            until = node.frozen_until(now)
            if until is not None:
                self._schedule.put(name, until)
                continue
            self._say_all(node, node.due(now))
            due = node.next_deadline()
            self._schedule.put(name, None if due is not None and due <= now else due)  # else it waits for no time
        self._take(self._core.tick(now))

    def _await(self, node: Watched) -> None:
        """The node's next deadline may be another one; it is asked when this moment is over."""
        self._unsettled[node.name] = node

    def _settle(self) -> None:
        """Note the next deadlines of the nodes to which something has happened."""
        for node in self._unsettled.values():
            self._schedule.put(node.name, node.next_deadline())
        self._unsettled.clear()

    def end(self) -> list[FinalLine]:
        """The end of the recording: the last words of the judges, then where everything stands."""
        self._call_whole()
        self._settle()
        self._let_due_happen()
        for node in self.cast.nodes.values():
            self._say_all(node, node.close(self._now))
        *subjects, fleet = self._core.final(self._now)
        events = {line.event.id: line.event for line in self.lines if isinstance(line, EventLine)}
        lost = [event.fields for event in events.values() if event.code == "kernel_records_lost"]
        counts = {
            **fleet.counts,
            "records_lost": sum(_lost(fields) for fields in lost),
            "unparsed": sum(node.unparsed for node in self.cast.nodes.values()),
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
        seen = observation if isinstance(observation, GpuSample) else self._recast(observation, node)
        self._say_all(node, node.told(seen))
        self._await(node)

    def _recast(self, observation: AnyObservation, node: Watched) -> AnyObservation:
        """The observation under the names of the play, once what it says of orders has been told."""
        orders = tuple(self._orders.values())
        if isinstance(observation, NodeSeen):
            self.cast.learn(node, (gpu.uuid for gpu in observation.gpus))
            self._answer(node, outcomes.of_resets(observation, orders))
        elif isinstance(observation, Check):
            self._answer(node, outcomes.of_check(observation, orders))
        return outcomes.as_ordered(self.cast.named(observation, node, orders), orders)

    def _answer(self, node: Watched, items: Iterable[ActionItem | FenceItem]) -> None:
        self._say_all(node, [Arrived(node=node.name, item=item) for item in items])

    def _call_whole(self) -> None:
        """A recording shows replicas one by one; once as many as declared were seen, no node has more to tell.

        Until then (30 s at most, the core's own patience) nothing is started that only was not mentioned yet.
        """
        for node in self.cast.complete():
            self._say_all(node, [node.replicas(whole=True)])

    def _node_of(self, observation: AnyObservation) -> Watched | None:
        node = self.cast.node_of(observation)
        if node is not None and node.pauses is None:
            node.pauses = sorted([*self._pauses.get(node.name, ()), *self._pauses.get(None, ())])
            self._await(node)
        return node

    def _say_all(self, node: Watched, stimuli: Iterable[Stimulus]) -> None:
        link = self._links[node.name]
        for stimulus in stimuli:
            if link.passes(stimulus):
                self._tell(stimulus)

    def _tell(self, stimulus: Stimulus) -> None:
        assert isinstance(stimulus, AnyStimulus)
        self._take(self._core.take(stimulus, self._now))

    def _take(self, lines: list[AnyLine]) -> None:
        self.lines += lines
        for line in lines:
            if not isinstance(line, ActionLine):
                continue
            if line.state in TERMINAL_ACTIONS:
                self._orders.pop(line.id, None)
            else:
                self._orders[line.id] = line

    # -- what is not of a node's judge ------------------------------------------------------------------

    def _declare(self, seen: DeploymentSeen) -> None:
        deployment = Deployment(
            name=seen.deployment,
            replicas=seen.replicas,
            gpus_per_replica=seen.gpus_per_replica,
            nodes_per_replica=seen.nodes_per_replica,
            island=seen.island,
            min_ready=min(1, seen.replicas) if seen.min_ready is None else seen.min_ready,
            gpus=seen.gpus,
            engine=seen.engine or "torch",
            prestop_s=seen.stop.get("prestop_s", 0.0),
            drain_s=seen.stop.get("drain_s", 120.0),
            kill_s=seen.stop.get("kill_s", 10.0),
            managed_by=seen.managed_by,
            manager_kill_s=None if seen.managed_by == "corral" else seen.stop.get("kill_s"),
        )
        self.cast.want(seen.deployment, seen.replicas)
        self._deployments[deployment.name] = deployment
        self._tell(Declared(deployment=deployment))

    def _divide(self, seen: FleetShape) -> None:
        """Pools give their nodes a level; pools and domains divide the budget."""
        pools = {name: tuple(pool.get("nodes") or ()) for name, pool in seen.pools.items()}
        self._shape = Shaped(pools=pools, domains=seen.domains)
        self._tell(self._shape)
        for name, pool in seen.pools.items():
            for node in pools[name] if pool.get("level") else ():
                self._set_level(node, Level(pool["level"]))

    def _set_level(self, name: str, level: Level) -> None:
        self.cast.levels[name] = level
        node = self.cast.nodes.get(name)
        if node is not None:
            node.level = level
            self._say_all(node, node.greeting())

    def _ask(self, order: Operator) -> None:
        self._tell(
            Asked(
                do=order.do,
                by=order.by,
                reason=order.reason,
                owner=order.owner,
                force=order.force,
                cut_short=order.force,  # in a recording one word is both
                gpu=order.gpu,
                node=order.node,
                deployment=order.deployment,
                incident=order.incident,
            )
        )
        node = self.cast.node_of(order) if order.do == SET_HEALTHY else None
        if node is not None:  # the agent of the node looks anew as well
            self._say_all(node, node.told(order))
            self._await(node)

    def _reach(self, reach: Reach) -> None:
        self._tell(Reached(of=reach.of, by=reach.by, ok=reach.ok))

    def _report(self, report: Report) -> None:
        node = self._node_of(report)
        if node is not None and self._links[node.name].reaches:
            self._tell(Reported(node=node.name))

    def _act(self, seen: ActionSeen) -> None:
        """What became of an order, or what an agent or somebody else did."""
        node = self._node_of(seen)
        if node is None:
            self.stray += 1
            return
        seen = replace(seen, node=node.name, replica=self.cast.names.get(seen.replica or "", seen.replica))
        fences = list(outcomes.of_fence(seen))
        ends = list(outcomes.of_action(seen, self._orders.values(), node.statuses.on(seen.gpu)))
        self._answer(node, [*fences, *ends])
        if seen.by == OTHER and not ends:
            self._say_all(node, node.acted(seen))
            self._await(node)

    def _restart(self, restart: Restart) -> None:
        """A new controller folds what its disk holds, or begins a new epoch with an empty one."""
        if restart.of == "agent":
            node = self._node_of(restart)
            if node is not None:
                node.restart(restart)
                if node.seen is not None and not restart.kept:
                    self._say_all(node, [NodeReported(facts=node.facts(node.seen))])
                self._await(node)
        if restart.of != "controller":
            return
        if restart.kept:
            self._core = Core(self._settings)
            for line in self.lines:
                self._core.fold(line)
        else:
            self._settings = replace(self._settings, epoch=self._settings.epoch + 1)
            self._core = Core(self._settings)
            self._orders.clear()
        self._introduce(kept=restart.kept)

    def _introduce(self, *, kept: bool) -> None:
        """Tell a new controller what its configuration says, and what nodes say when they connect."""
        self._tell(self._shape)
        nodes = self.cast.nodes.values()
        for node in nodes if kept else ():
            if node.seen is not None:
                self._tell(Recalled(facts=node.facts(node.seen)))
        for deployment in self._deployments.values():
            self._tell(Declared(deployment=deployment))
        for node in nodes:
            self._say_all(node, node.greeting())
        for node in self.cast.told():
            self._say_all(node, [node.replicas(whole=True)])

    def _uplink(self, uplink: Uplink) -> None:
        node = self._node_of(uplink)
        if node is not None:
            for stimulus in self._links[node.name].turn(uplink.state):
                self._tell(stimulus)

    def _clock(self, step: ClockStep) -> None:
        """A pause was found before the play began; a jump of the wall clock moves no duration."""
        node = self._node_of(step)
        if node is not None and step.pause_s is None:
            self._say_all(node, node.told(step))
            self._await(node)


def _lost(fields: dict[str, object]) -> int:
    first, last = fields.get("from"), fields.get("to")
    return last - first + 1 if isinstance(first, int) and isinstance(last, int) else 0
