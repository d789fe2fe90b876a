"""A referee of budgets: it reads the stored lines and what nodes have reported, never the core's own counts.

It judges every line at the moment at which it is stored, so what was wrong only between two looks is seen too. People
are judged as automation is; what a person forces is let pass where docs/policy.md says so, and nowhere else: the hold
of a forced order over the budget of cordons, a forced approval under a floor; each must name the limit that it breaks.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil

import msgspec

from controller.core.fleet.settings import Settings
from controller.core.fleet.stimuli import Asked, Deployment
from vocab.lines import ActionLine, AnyLine, ConditionLine, HoldLine, NoteLine, StateLine, Subject
from vocab.messages import ReplicaStatus
from vocab.states import ActionKind, ActionState, Level, NodeState

LOSSES = frozenset({"gpu_lost", "xid:79"})
REPAIRS = frozenset({ActionKind.RESET_GPU, ActionKind.REBOOT_NODE, ActionKind.POWER_CYCLE})
STARTED = frozenset({ActionState.ORDERED, ActionState.RUNNING})
TOLD = STARTED | {ActionState.TIMED_OUT, ActionState.DONE}  # of a drain or a stop: it goes, or has gone
OLD_S = 20.0  # a report that old says nothing any more: three gaps of nodes that report every 2 s, 15 s at least


class Ground(msgspec.Struct):
    """What the referee knows of the fleet. ``settings`` are those that were adopted last; the rest does not change."""

    gpus: Mapping[str, str]  # GPU -> node
    nodes: Mapping[str, Sequence[str]]  # node -> GPUs
    pools: Mapping[str, tuple[str, ...]]
    domains: Mapping[str, tuple[str, ...]]
    deployments: Mapping[str, Deployment]
    settings: Settings
    is_lost: Callable[[str], bool]  # whether a GPU is gone from its bus
    is_silent: Callable[[str], bool]  # whether a node's agent, or its power, is gone


class Foul(AssertionError):
    """A line that breaks a budget."""


class Referee:
    """``heard`` takes the replicas of each report; ``judge`` each stored line, in order."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.asked: Asked | None = None  # the order that is being answered
        self._demoted: set[str] = set()
        self._paused = False
        self._holds: dict[str, HoldLine] = {}  # not the fences
        self._actions: dict[str, ActionLine] = {}
        self._asked: set[str] = set()  # closings that a manager was ever asked for
        self._closings: dict[tuple[str, str], ActionLine] = {}  # by manager and place
        self._discarded_at = 0.0
        self._boots: dict[str, str] = {}
        self._lost: set[str] = set()  # nodes of which it was said
        self._healthy: set[str] = set()  # GPUs that a person called so, and of which no loss was told since
        self._reports: dict[str, deque[tuple[float, tuple[ReplicaStatus, ...]]]] = {}

    def heard(self, node: str, statuses: Iterable[ReplicaStatus], now: float) -> None:
        """All replicas of a node; what was decided while the report was taken in may rest on the one before."""
        self._reports.setdefault(node, deque(maxlen=2)).append((now, tuple(statuses)))

    def booted(self, node: str, boot_id: str, now: float) -> None:
        """What a node says of itself: with another boot, nothing that ran there runs any more."""
        if self._boots.get(node, boot_id) != boot_id:
            self._reports[node] = deque([(now, ()), (now, ())], maxlen=2)
        self._boots[node] = boot_id

    def begin_anew(self, lines: Iterable[AnyLine]) -> None:
        """A controller that came back knows no more than its stored lines, and neither does the referee."""
        self._holds.clear()
        self._demoted.clear()
        self._lost.clear()
        self._healthy.clear()
        self._paused = False
        self._actions.clear()
        self._asked.clear()
        self._closings.clear()
        self._discarded_at = 0.0
        for line in lines:
            self._note(line)

    def judge(self, line: AnyLine) -> None:
        """Raises Foul."""
        if isinstance(line, HoldLine) and line.op == "placed" and not line.owner.startswith("agent:"):
            self._judge_cordon(line)
            self._judge_leave(line, line.owner == "policy", line.rule, Level.CORDON)
        elif isinstance(line, ActionLine) and line.state is ActionState.ORDERED:
            self._judge_order(line)
        self._note(line)

    # -- what stands ----------------------------------------------------------------------------------

    def _note(self, line: AnyLine) -> None:
        if isinstance(line, HoldLine) and line.op == "placed" and not line.owner.startswith("agent:"):
            self._holds[line.id] = line
        elif isinstance(line, HoldLine) and line.op == "lifted":
            self._holds.pop(line.id, None)
        elif isinstance(line, NoteLine):
            self._note_word(line)
        elif isinstance(line, ConditionLine) and line.code in LOSSES and line.state == "open":
            self._healthy.discard(line.subject.gpu or "")
        elif isinstance(line, StateLine) and line.subject.node is not None:
            (self._lost.add if line.to == NodeState.LOST else self._lost.discard)(line.subject.node)
        elif isinstance(line, ActionLine):
            self._actions[line.id] = line
            self._note_closing(line)

    def _note_word(self, line: NoteLine) -> None:
        if line.code == "set_healthy" and line.subject.gpu is not None:
            self._healthy.add(line.subject.gpu)
        if line.code == "backlog_discarded":
            self._discarded_at = line.at
        if line.code in {"backlog_discarded", "policy_adopted"}:
            self._demoted.clear()
        elif line.code == "rule_demoted":
            self._demoted.add(line.rule or "")
        elif line.code in {"paused", "resumed"} and line.pool is None and line.subject == Subject():
            self._paused = line.code == "paused"

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
        return self.ground.gpus.get(line.subject.gpu or "") or line.subject.node or ""

    # -- the policy in force --------------------------------------------------------------------------

    def _judge_leave(self, line: AnyLine, is_automation: bool, rule: str | None, needed: Level) -> None:
        """Nothing harmful by itself during a pause, above the level of the policy, or by a rule that fell back."""
        if not is_automation:
            return
        settings, code = self.ground.settings, (rule or "").removeprefix("catalogue/")
        resumes = self.asked is not None and self.asked.do == "resume"  # lines of one turn stand by kind, notes last
        if self._paused and not resumes:
            raise Foul(f"automation is paused: {line}")
        if not settings.level.allows(needed):
            raise Foul(f"the policy's level is {settings.level}: {line}")
        if code in self._demoted or (code in settings.rules and settings.rules[code].shadow):
            raise Foul(f"the rule for {code} is in shadow: {line}")

    # -- cordons --------------------------------------------------------------------------------------

    def _judge_cordon(self, line: HoldLine) -> None:
        told = self._over_cordons(line)
        if told is None or (line.owner != "policy" and self._is_out(line)):
            return
        forced = line.owner != "policy" and self.asked is not None and self.asked.force
        if not forced or line.budget is None:
            raise Foul(f"{told}: {line}")

    def _is_out(self, line: HoldLine) -> bool:
        """Whether the place is held already: one more hold takes nothing more out of service."""
        places = {line.subject, Subject(node=self._node_of(line))}
        return any(hold.subject in places for hold in self._holds.values())

    def _over_cordons(self, line: HoldLine) -> str | None:
        ground, limits = self.ground, self.ground.settings.limits
        since = max(line.at - limits.window_s, self._discarded_at)
        recent = [hold for hold in self._holds.values() if hold.stands_since > since]
        node = self._node_of(line)
        nodes = {self._node_of(hold) for hold in recent}
        for name, members, its in self._scopes(node) if node not in nodes else ():
            most = min(its.cordons, ceil(its.cordons_ratio * len(members)))
            used = len(nodes.intersection(members)) + 1
            if used > most:
                return f"{used} of {most} nodes of {name} are newly cordoned"
        gpu, whole = line.subject.gpu, any(hold.subject.node == node for hold in recent)
        if gpu is not None and not ground.is_lost(gpu) and not whole:
            here = {h.subject.gpu for h in recent if h.subject.gpu in ground.nodes[node]} | {gpu}
            used = sum(not ground.is_lost(each or "") for each in here)
            most = max(2, int(limits.node_ratio * len(ground.nodes[node])))
            if used > most:
                return f"{used} of {most} GPUs of {node} that answer are newly cordoned"
        return None

    def _scopes(self, node: str) -> Iterable[tuple[str, tuple[str, ...], object]]:
        ground = self.ground
        yield "the fleet", tuple(ground.nodes), ground.settings.limits
        for name, nodes in ground.pools.items():
            if node in nodes:
                yield f"pool {name}", nodes, ground.settings.limits_of(name)
        for name, nodes in ground.domains.items():
            if node in nodes:
                yield f"domain {name}", nodes, ground.settings.limits

    # -- repairs --------------------------------------------------------------------------------------

    def _judge_repair(self, line: ActionLine) -> None:
        """Not more than may be at one time; if a person approved it by force, floors are that person's to judge."""
        under_way = [a for a in self._actions.values() if a.of in REPAIRS and a.state in STARTED and a.id != line.id]
        if len(under_way) >= self.ground.settings.limits.repairs:
            raise Foul(f"{len(under_way) + 1} repairs at one time: {line}")
        approved = self.asked is not None and self.asked.do == "approve" and line.why.startswith("approved")
        if not approved or self._paused:
            self._judge_leave(line, True, line.rule, Level.REPAIR)
        going = {subject.replica for subject in line.disrupts if subject.replica}
        told = self._under_floor(going, line.at)
        if told is not None and not (approved and self.asked is not None and self.asked.force and line.budget):
            raise Foul(f"{told}: {line}")

    # -- floors and closings --------------------------------------------------------------------------

    def _judge_order(self, line: ActionLine) -> None:
        if line.of is ActionKind.DRAIN and line.rule.startswith("manager/"):
            self._judge_closing(line)
        elif line.of in {ActionKind.DRAIN, ActionKind.STOP_REPLICA}:
            led = line.of is ActionKind.DRAIN and line.incident is not None
            self._judge_leave(line, led, line.rule, Level.CORDON)
            told = self._under_floor({line.subject.replica or ""}, line.at)
            if told is not None:
                raise Foul(f"{told}: {line}")
        elif line.of in REPAIRS:
            self._judge_repair(line)

    def _under_floor(self, going: set[str], now: float) -> str | None:
        """Nothing that serves is taken from a deployment that would then have too few left."""
        last, before = self._serving(now, 1), self._serving(now, 2)
        for name in {last[replica] for replica in going & last.keys() & before.keys()}:
            left = sum(deployment == name for replica, deployment in (before | last).items() if replica not in going)
            least = self.ground.deployments[name].min_ready
            if left < least:
                return f"{left} of {least} replicas of {name} are left"
        return None

    def _serving(self, now: float, nth: int) -> dict[str, str]:
        """The replicas that work by their nodes' ``nth`` last report, and are not to go, with their deployments.

        A group works while each of its nodes says so of its part. A line that was decided while a report was taken in
        may rest on the report before: the doubt is for the core.
        """
        told = {
            action.subject.replica
            for action in self._actions.values()
            if action.of in {ActionKind.DRAIN, ActionKind.STOP_REPLICA} and action.state in TOLD
        }
        repairs = [one for one in self._actions.values() if one.of in REPAIRS and one.state in STARTED]
        told |= {subject.replica for repair in repairs for subject in repair.disrupts}
        parts: dict[str, dict[str, ReplicaStatus]] = defaultdict(dict)
        for node, heard in self._reports.items():
            at, statuses = heard[-nth] if len(heard) >= nth else (0.0, ())
            for status in statuses if now - at <= OLD_S else ():
                parts[status.replica][node] = status
        return {name: next(iter(of.values())).deployment for name, of in parts.items()
                if name not in told and self._works(of)}  # fmt: skip

    def _works(self, parts: Mapping[str, ReplicaStatus]) -> bool:
        needed = {member.node for part in parts.values() for member in part.members}
        if any(node in self._lost and self.ground.is_silent(node) for node in needed):
            return False
        return needed <= parts.keys() and all(self._steps(part) for part in parts.values())

    def _steps(self, status: ReplicaStatus) -> bool:
        gpus = {member.gpu for member in status.members} - self._healthy  # of those a person's word counts
        lost = any(self.ground.is_lost(gpu) for gpu in gpus)
        return status.phase in {"ready", "draining"} and status.stepping and not lost

    def _judge_closing(self, line: ActionLine) -> None:
        """GPUs that a manager is asked to keep closed, all together; one place is always possible."""
        ground = self.ground
        others = [one for (by, _), one in self._closings.items() if by == line.rule and one.subject != line.subject]
        used = sum(self._size(one) for one in others)
        mine = [node for node, gpus in ground.nodes.items() if node in ground.pools["theirs"]]
        most = int(ground.settings.limits_of("theirs").closed_ratio * sum(len(ground.nodes[node]) for node in mine))
        if used and used + self._size(line) > most:
            raise Foul(f"{used} and {self._size(line)} of {most} GPUs are closed at their manager: {line}")

    def _size(self, line: ActionLine) -> int:
        return 1 if line.subject.gpu is not None else len(self.ground.nodes[line.subject.node or ""])
