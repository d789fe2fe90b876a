"""A referee of budgets: it reads the stored lines and what nodes have reported, never the core's own counts.

It judges every line at the moment at which it is stored, so what was wrong only between two looks is seen too.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil

import msgspec

from controller.core.fleet.settings import Settings
from controller.core.fleet.stimuli import Deployment
from vocab.lines import ActionLine, AnyLine, HoldLine, NoteLine
from vocab.messages import ReplicaStatus
from vocab.states import ActionKind, ActionState

REPAIRS = frozenset({ActionKind.RESET_GPU, ActionKind.REBOOT_NODE, ActionKind.POWER_CYCLE})
STARTED = frozenset({ActionState.ORDERED, ActionState.RUNNING})
TOLD = STARTED | {ActionState.TIMED_OUT, ActionState.DONE}  # of a drain or a stop: it goes, or has gone
OLD_S = 20.0  # a report that old says nothing any more: three gaps of nodes that report every 2 s, 15 s at least


class Ground(msgspec.Struct, frozen=True):
    """What the referee knows of the fleet: it does not change."""

    gpus: Mapping[str, str]  # GPU -> node
    nodes: Mapping[str, Sequence[str]]  # node -> GPUs
    pools: Mapping[str, tuple[str, ...]]
    domains: Mapping[str, tuple[str, ...]]
    deployments: Mapping[str, Deployment]
    settings: Settings
    is_lost: Callable[[str], bool]  # whether a GPU is gone from its bus


class Foul(AssertionError):
    """A line that breaks a budget."""


class Referee:
    """``heard`` takes the replicas of each report; ``judge`` each stored line, in order."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._holds: dict[str, HoldLine] = {}
        self._actions: dict[str, ActionLine] = {}
        self._asked: set[str] = set()  # closings that a manager was ever asked for
        self._closings: dict[tuple[str, str], ActionLine] = {}  # by manager and place
        self._discarded_at = 0.0
        self._reports: dict[str, deque[tuple[float, tuple[ReplicaStatus, ...]]]] = {}

    def heard(self, node: str, statuses: Iterable[ReplicaStatus], now: float) -> None:
        """All replicas of a node; what was decided while the report was taken in may rest on the one before."""
        self._reports.setdefault(node, deque(maxlen=2)).append((now, tuple(statuses)))

    def begin_anew(self, lines: Iterable[AnyLine]) -> None:
        """A controller that came back knows no more than its stored lines, and neither does the referee."""
        self._holds.clear()
        self._actions.clear()
        self._asked.clear()
        self._closings.clear()
        self._discarded_at = 0.0
        for line in lines:
            self._note(line)

    def judge(self, line: AnyLine) -> None:
        """Raises Foul."""
        if isinstance(line, HoldLine) and line.op == "placed" and line.owner == "policy":
            self._judge_cordon(line)
        elif isinstance(line, ActionLine) and line.state is ActionState.ORDERED:
            self._judge_order(line)
        self._note(line)
        self._judge_repairs(line)

    # -- what stands ----------------------------------------------------------------------------------

    def _note(self, line: AnyLine) -> None:
        if isinstance(line, HoldLine) and line.op == "placed" and line.owner == "policy":
            self._holds[line.id] = line
        elif isinstance(line, HoldLine) and line.op == "lifted":
            self._holds.pop(line.id, None)
        elif isinstance(line, NoteLine) and line.code == "backlog_discarded":
            self._discarded_at = line.at
        elif isinstance(line, ActionLine):
            self._actions[line.id] = line
            self._note_closing(line)

    def _note_closing(self, line: ActionLine) -> None:
        if not line.rule.startswith("manager/"):
            return
        place = (line.rule, line.subject.gpu or line.subject.node or "")
        if line.of is ActionKind.DRAIN and line.state is ActionState.ORDERED:
            self._asked.add(line.id)
            self._closings[place] = line
        elif line.of is ActionKind.RELEASE:
            self._closings.pop(place, None)

    def _node_of(self, line: AnyLine) -> str:
        return self._ground.gpus.get(line.subject.gpu or "") or line.subject.node or ""

    # -- cordons --------------------------------------------------------------------------------------

    def _judge_cordon(self, line: HoldLine) -> None:
        ground, limits = self._ground, self._ground.settings.limits
        since = max(line.at - limits.window_s, self._discarded_at)
        recent = [hold for hold in self._holds.values() if hold.at > since]
        node = self._node_of(line)
        nodes = {self._node_of(hold) for hold in recent}
        for name, members, its in self._scopes(node) if node not in nodes else ():
            most = min(its.cordons, ceil(its.cordons_ratio * len(members)))
            used = len(nodes.intersection(members)) + 1
            if used > most:
                raise Foul(f"{used} of {most} nodes of {name} are newly cordoned: {line}")
        gpu = line.subject.gpu
        if gpu is not None and not ground.is_lost(gpu):
            here = {h.subject.gpu for h in recent if h.subject.gpu in ground.nodes[node]} | {gpu}
            used = sum(not ground.is_lost(each or "") for each in here)
            most = max(2, int(limits.node_ratio * len(ground.nodes[node])))
            if used > most:
                raise Foul(f"{used} of {most} GPUs of {node} that answer are newly cordoned: {line}")

    def _scopes(self, node: str) -> Iterable[tuple[str, tuple[str, ...], object]]:
        ground = self._ground
        yield "the fleet", tuple(ground.nodes), ground.settings.limits
        for name, nodes in ground.pools.items():
            if node in nodes:
                yield f"pool {name}", nodes, ground.settings.limits_of(name)
        for name, nodes in ground.domains.items():
            if node in nodes:
                yield f"domain {name}", nodes, ground.settings.limits

    # -- repairs --------------------------------------------------------------------------------------

    def _judge_repairs(self, line: AnyLine) -> None:
        under_way = [a for a in self._actions.values() if a.of in REPAIRS and a.state in STARTED]
        if len(under_way) > self._ground.settings.limits.repairs:
            raise Foul(f"{len(under_way)} repairs at one time: {line}")

    # -- floors and closings --------------------------------------------------------------------------

    def _judge_order(self, line: ActionLine) -> None:
        if line.of is ActionKind.DRAIN and line.rule.startswith("manager/"):
            self._judge_closing(line)
        elif line.of in {ActionKind.DRAIN, ActionKind.STOP_REPLICA}:
            self._judge_floor({line.subject.replica or ""}, line)
        elif line.of in REPAIRS and not line.why.startswith("approved"):
            self._judge_floor({subject.replica for subject in line.disrupts if subject.replica}, line)

    def _judge_floor(self, going: set[str], line: ActionLine) -> None:
        """Nothing that serves is taken from a deployment that would then have too few left."""
        last, before = self._serving(line.at, 1), self._serving(line.at, 2)
        for name in {last[replica] for replica in going & last.keys() & before.keys()}:
            left = sum(deployment == name for replica, deployment in (before | last).items() if replica not in going)
            least = self._ground.deployments[name].min_ready
            if left < least:
                raise Foul(f"{left} of {least} replicas of {name} are left: {line}")

    def _serving(self, now: float, nth: int) -> dict[str, str]:
        """The replicas that work by their nodes' ``nth`` last report, and were not told to go, with their deployments.

        A line that was decided while a report was taken in may rest on the report before: the doubt is for the core.
        """
        told = {
            action.subject.replica
            for action in self._actions.values()
            if action.of in {ActionKind.DRAIN, ActionKind.STOP_REPLICA} and action.state in TOLD
        }
        reports = [heard[-nth] for heard in self._reports.values() if len(heard) >= nth]
        found = [status for at, statuses in reports if now - at <= OLD_S for status in statuses]
        return {one.replica: one.deployment for one in found if self._steps(one) and one.replica not in told}

    def _steps(self, status: ReplicaStatus) -> bool:
        lost = any(self._ground.is_lost(member.gpu) for member in status.members)
        return status.phase in {"ready", "draining"} and status.stepping and not lost

    def _judge_closing(self, line: ActionLine) -> None:
        """GPUs that a manager is asked to keep closed, all together; one place is always possible."""
        ground = self._ground
        others = [one for (by, _), one in self._closings.items() if by == line.rule and one.subject != line.subject]
        used = sum(self._size(one) for one in others)
        mine = [node for node, gpus in ground.nodes.items() if node in ground.pools["theirs"]]
        most = int(ground.settings.limits_of("theirs").closed_ratio * sum(len(ground.nodes[node]) for node in mine))
        if used and used + self._size(line) > most:
            raise Foul(f"{used} and {self._size(line)} of {most} GPUs are closed at their manager: {line}")

    def _size(self, line: ActionLine) -> int:
        return 1 if line.subject.gpu is not None else len(self._ground.nodes[line.subject.node or ""])
