"""No sequence of events, silences, restarts and orders breaks a budget, or takes a deployment under its floor by us.

The real core in virtual time; ``Referee`` judges every line that it stores. Two nodes belong to a manager that closes
places and evicts what runs there, is away now and then, forgets, and is overruled by people. Some replicas are groups
over two nodes. People give orders with and without force, judge what was done, and adopt other policies meanwhile.
"""

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from controller.core.fleet.settings import Limits, Pool, Rule, Settings
from controller.core.fleet.stimuli import (
    Adopted,
    Asked,
    Deployment,
    Managed,
    Managing,
    NodeReported,
    Reached,
    Replicas,
    Shaped,
    Stimulus,
)
from tests.sim.node import START_S, Node
from tests.sim.referee import REPAIRS, Ground, Referee
from tests.sim.world import World
from vocab.lines import AnyLine
from vocab.messages import ReplicaStatus
from vocab.observations import Member, Owner
from vocab.states import ActionKind, ActionState, Level

GPUS = 3
LIMITS = Limits(window_s=60.0, cordons=3, cordons_ratio=0.5, repairs=2, closed_ratio=0.5)
OURS = ("n1", "n2", "n3", "n4")
THEIRS = ("n5", "n6")
POOLS = {"first": ("n1", "n2"), "second": ("n3", "n4"), "theirs": THEIRS}
DOMAINS = {"rack": ("n2", "n3"), "switch": ("n1", "n2", "n3", "n4")}
SETTINGS = Settings(limits=LIMITS, pools={"second": Pool(limits=msgspec.structs.replace(LIMITS, cordons=1))})
STRICT = msgspec.structs.replace(LIMITS, cordons=1, repairs=1, window_s=300.0)
POLICIES = {
    "first": SETTINGS,
    "strict": Settings(policy="strict", limits=STRICT),
    "careful": Settings(policy="careful", limits=LIMITS, level=Level.CORDON),
    "silent": Settings(policy="silent", limits=LIMITS, level=Level.OBSERVE),
    "in shadow": Settings(policy="in shadow", limits=LIMITS, rules={"xid:79": Rule(shadow=True)}),
}
CHAT = Deployment(name="chat", replicas=5, min_ready=3)
PAIR = Deployment(name="pair", replicas=1, gpus_per_replica=2, min_ready=1)
WIDE = Deployment(name="wide", replicas=2, gpus_per_replica=2, nodes_per_replica=2, min_ready=1)
PODS = Deployment(name="pods", replicas=4, min_ready=3, managed_by="kubernetes")
DEPLOYMENTS = {each.name: each for each in (CHAT, PAIR, WIDE, PODS)}
CODES = ("xid:79", "xid:95", "gpu_lost", "remap_failed", "ecc_uncorrectable", "xid:13", "nvlink_down", "xid:119")
SECONDS = (2, 4, 10, 24, 64)


class Hosting(Node):
    """A node of the manager: pods run there by their names."""

    def __init__(self, name: str) -> None:
        super().__init__(name, GPUS)
        self.pods: dict[str, str] = {}  # pod -> GPU

    def report(self, now: float) -> list[Stimulus]:
        found = tuple(self._pod(name, gpu) for name, gpu in self.pods.items())
        return [
            msgspec.structs.replace(one, statuses=(*one.statuses, *found)) if isinstance(one, Replicas) else one
            for one in super().report(now)
        ]

    def _pod(self, name: str, gpu: str) -> ReplicaStatus:
        is_well = gpu not in self.lost
        return ReplicaStatus(
            replica=name, deployment="pods", members=(Member(node=self.name, gpu=gpu, rank=0),), phase="ready",
            ready=is_well, admitting=is_well, stepping=is_well, observed=True, engine="vllm", model="pods",
            owner=Owner(kind="kubernetes", name=name),
        )  # fmt: skip


class Owning:
    """The manager: it carries out what is asked of it, and starts its pods again where nothing is closed."""

    def __init__(self, nodes: tuple[Hosting, ...], grain: str) -> None:
        self.nodes = nodes
        self.grain = grain
        self.marks: set[str] = set()
        self.away = False
        self.other: set[str] = set()  # nodes on which somebody else is at work
        self.began_at = 0.0
        self.pods = 0

    def live(self, world: World) -> None:
        """One look at what is asked, and one word on each node."""
        world.tell(Managing(by="kubernetes", ok=not self.away, why="away" * self.away, nodes=True, ends=True))
        if self.away:
            return
        for order in world.core.orders():
            place = order.gpu or order.node
            if order.replica is not None:
                for node in self.nodes:
                    node.pods.pop(order.replica, None)
            elif order.action.of is ActionKind.DRAIN:
                self.marks.add(place)
            else:
                self.marks.discard(place)
        self._schedule()
        for node in self.nodes:
            ours = tuple(sorted(mark for mark in self.marks if mark == node.name or mark in node.gpus))
            other = "NVSentinel is at work on it" if node.name in self.other else ""
            busy, began = bool(node.pods), self.began_at
            world.tell(
                Managed(
                    node=node.name, by="kubernetes", grain=self.grain, ours=ours, busy=busy, other=other, began_at=began
                )
            )

    def _schedule(self) -> None:
        missing = PODS.replicas - sum(len(node.pods) for node in self.nodes)
        for node in self.nodes:
            taken = set(node.pods.values())
            for gpu in node.gpus if node.name not in self.marks and not node.silent else ():
                if missing > 0 and gpu not in taken and gpu not in self.marks and gpu not in node.lost:
                    self.pods += 1
                    node.pods[f"pod-{self.pods}"] = gpu
                    missing -= 1


class Watched(World):
    """A world whose every stored line is judged."""

    def __init__(self, nodes: list[Node], owning: Owning) -> None:
        gpus = {gpu: node.name for node in nodes for gpu in node.gpus}
        self.referee = Referee(
            Ground(
                gpus=gpus,
                nodes={node.name: node.gpus for node in nodes},
                pools=POOLS,
                domains=DOMAINS,
                deployments=DEPLOYMENTS,
                settings=SETTINGS,
                is_lost=lambda gpu: gpu in self.nodes[gpus[gpu]].lost,
                is_silent=lambda node: self.nodes[node].silent,
            )
        )
        self.owning = owning
        self.holes: set[str] = set()  # nodes on which nothing comes up
        super().__init__(nodes, list(DEPLOYMENTS.values()), SETTINGS)

    def _declare(self) -> None:
        self.tell(Shaped(pools=POOLS, domains=DOMAINS, powered=("n1",)))
        super()._declare()
        self.tell(Managing(by="kubernetes", nodes=True, ends=True))

    def tell(self, stimulus: Stimulus) -> list[AnyLine]:
        if isinstance(stimulus, Replicas):
            self.referee.heard(stimulus.node, stimulus.statuses, self.now)
        elif isinstance(stimulus, NodeReported):
            self.referee.booted(stimulus.facts.node, stimulus.facts.boot_id, self.now)
        elif isinstance(stimulus, Adopted):
            self.settings = self.referee.ground.settings = stimulus.settings
        self.referee.asked = stimulus if isinstance(stimulus, Asked) else None
        try:
            return super().tell(stimulus)
        finally:
            self.referee.asked = None

    def _store(self, said: list[AnyLine]) -> list[AnyLine]:
        for line in said:
            self.referee.judge(line)
        return super()._store(said)

    def restart(self, keep: int | None = None) -> None:
        self.referee.begin_anew(self.lines[:keep])
        super().restart(keep)

    def beat(self, *, twice: bool = False) -> None:
        super().beat(twice=twice)
        for name in self.holes:
            node = self.nodes[name]
            for replica in [r for r, p in node.processes.items() if self.now - p.began_at < START_S]:
                node.crash(replica)
        if not self.down:
            self.owning.live(self)


names = st.sampled_from((*OURS, *THEIRS))
indexes = st.integers(0, GPUS - 1)
seconds = st.sampled_from(SECONDS)


class Budgets(RuleBasedStateMachine):
    """Whatever may happen to a fleet, in any order. Each rule lets some time pass."""

    @initialize(grain=st.sampled_from(("gpu", "node")))
    def begin(self, grain: str) -> None:
        theirs = tuple(Hosting(name) for name in THEIRS)
        nodes: list[Node] = [*(Node(name, GPUS) for name in OURS), *theirs]
        for node in nodes:
            node.obeys = True
        self.world = Watched(nodes, Owning(theirs, grain))
        self.world.run(12)

    @rule(name=names, index=indexes, code=st.sampled_from(CODES), fence=st.booleans(), after=seconds)
    def hit(self, name: str, index: int, code: str, fence: bool, after: int) -> None:
        node = self.world.nodes[name]
        node.hit(node.gpus[index], code, self.world.now, fence=fence)
        self.world.run(after)

    @rule(code=st.sampled_from(CODES), index=indexes, gap=st.sampled_from((0, 2)), after=seconds)
    def hit_everywhere(self, code: str, index: int, gap: int, after: int) -> None:
        """A bad probe, a bad driver, a power dip."""
        for node in self.world.nodes.values():
            node.hit(node.gpus[index], code, self.world.now)
            self.world.run(gap)
        self.world.run(after)

    @rule(name=names, index=indexes, after=seconds)
    def clear(self, name: str, index: int, after: int) -> None:
        node = self.world.nodes[name]
        node.clear(node.gpus[index], self.world.now)
        self.world.run(after)

    @rule(name=names, seen=st.booleans(), after=seconds)
    def fall_silent(self, name: str, seen: bool, after: int) -> None:
        """Its agent or its power is gone; if others see that, it is lost."""
        self.world.nodes[name].silent = True
        for by in ("gateway", "controller") if seen else ():
            self.world.tell(Reached(of=name, by=by, ok=False))
        self.world.run(after)

    @rule(name=names, dead=st.booleans(), after=seconds)
    def come_back(self, name: str, dead: bool, after: int) -> None:
        node = self.world.nodes[name]
        if dead:
            node.reboot(self.world.now)
        node.silent = False
        self.world.run(after)

    @rule(name=names, index=indexes, after=seconds)
    def go_blind(self, name: str, index: int, after: int) -> None:
        node = self.world.nodes[name]
        node.blind ^= {node.gpus[index]}
        self.world.run(after)

    @rule(name=st.sampled_from(OURS), stalls=st.booleans(), after=seconds)
    def crash(self, name: str, stalls: bool, after: int) -> None:
        node = self.world.nodes[name]
        for replica in list(node.processes):
            if stalls:
                node.stalled ^= {replica}
            else:
                node.crash(replica)
        self.world.run(after)

    @rule(name=st.sampled_from(OURS), after=seconds)
    def swallow(self, name: str, after: int) -> None:
        """A black hole: whatever is started there ends at once."""
        self.world.holes ^= {name}
        self.world.run(after)

    @rule(name=names, after=seconds)
    def be_busy(self, name: str, after: int) -> None:
        self.world.nodes[name].busy ^= True
        self.world.run(after)

    @rule(after=seconds)
    def restart(self, after: int) -> None:
        self.world.restart()
        self.world.run(after)

    @rule(lines=st.integers(1, 12), after=seconds)
    def die_while_writing(self, lines: int, after: int) -> None:
        self.world.crash_at = len(self.world.lines) + lines
        self.world.run(after)
        self.world.crash_at = None

    @rule(after=seconds)
    def be_down(self, after: int) -> None:
        self.world.down = True
        self.world.run(after)
        self.world.down = False
        self.world.restart()
        self.world.run(4)

    @rule(name=names, index=st.none() | indexes, force=st.booleans(), cut_short=st.booleans(), after=seconds)
    def drain(self, name: str, index: int | None, force: bool, cut_short: bool, after: int) -> None:
        """An operator's drain of a GPU or a node."""
        where = {"node": name} if index is None else {"gpu": self.world.nodes[name].gpus[index]}
        self.world.ask("drain", reason="look", force=force, cut_short=cut_short, **where)
        self.world.run(after)

    @rule(
        name=names,
        index=st.none() | indexes,
        owner=st.sampled_from(("operator", "ops")),
        force=st.booleans(),
        after=seconds,
    )
    def hold(self, name: str, index: int | None, owner: str, force: bool, after: int) -> None:
        where = {"node": name} if index is None else {"gpu": self.world.nodes[name].gpus[index]}
        self.world.ask("hold", reason="look", owner=owner, force=force, **where)
        self.world.run(after)

    @rule(name=names, lasts=st.sampled_from((10, 200)), force=st.booleans(), after=seconds)
    def maintain(self, name: str, lasts: int, force: bool, after: int) -> None:
        until = self.world.now + lasts
        self.world.tell(Asked(do="maintain", by="ada", reason="fans", node=name, until=until, force=force))
        self.world.run(after)

    @rule(policy=st.sampled_from(sorted(POLICIES)), after=seconds)
    def adopt(self, policy: str, after: int) -> None:
        """Another policy, or the one before again, in the middle of whatever goes on."""
        self.world.tell(Adopted(settings=POLICIES[policy], words=f"{policy} adopted at {self.world.now}"))
        self.world.run(after)

    @rule(verdict=st.sampled_from(("wrong", "right")), after=seconds)
    def judge(self, verdict: str, after: int) -> None:
        """People look at all that is open: many wrong ones send a rule back to shadow."""
        for incident in self.world.core.view().incidents:
            self.world.tell(Asked(do="close", by="ada", incident=incident.id, verdict=verdict))
        self.world.run(after)

    @rule(nth=st.integers(0, 9), force=st.booleans(), after=seconds)
    def lift(self, nth: int, force: bool, after: int) -> None:
        holds = self.world.core.view().holds
        if holds:
            self.world.ask("lift", hold=holds[nth % len(holds)].id, force=force, reason="because")
        self.world.run(after)

    @rule(
        name=names,
        index=indexes,
        do=st.sampled_from(("release", "set_healthy", "cancel", "approve")),
        force=st.booleans(),
        after=seconds,
    )
    def order(self, name: str, index: int, do: str, force: bool, after: int) -> None:
        self.world.ask(do, reason="because", gpu=self.world.nodes[name].gpus[index], force=force)
        self.world.run(after)

    @rule(do=st.sampled_from(("undo", "discard_backlog", "pause", "resume")), after=seconds)
    def order_everywhere(self, do: str, after: int) -> None:
        self.world.tell(Asked(do=do, by="ada", reason="because", since_s=100.0))
        self.world.run(after)

    @rule(do=st.sampled_from(("approve", "cancel")), nth=st.integers(0, 9), force=st.booleans(), after=seconds)
    def order_on_an_action(self, do: str, nth: int, force: bool, after: int) -> None:
        live = self.world.core.view().actions
        if do == "approve":  # what cannot be approved is refused at once
            live = tuple(action for action in live if action.state is ActionState.WAITING and action.of in REPAIRS)
        if live:
            self.world.ask(do, action=live[nth % len(live)].id, reason="because", force=force)
        self.world.run(after)

    @rule(
        what=st.sampled_from(("away", "back", "forgets", "other", "alone")), name=st.sampled_from(THEIRS), after=seconds
    )
    def manage(self, what: str, name: str, after: int) -> None:
        owning = self.world.owning
        if what in {"away", "back"}:
            owning.away = what == "away"
        elif what == "forgets":
            owning.marks.clear()
            owning.began_at = self.world.now
        elif what == "other":
            owning.other.add(name)
        else:
            owning.other.discard(name)
        self.world.run(after)

    @precondition(lambda self: self.world.owning.marks)
    @rule(after=seconds)
    def open_again(self, after: int) -> None:
        """A person opens at the manager what we have closed."""
        self.world.owning.marks.pop()
        self.world.run(after)


def test_a_replica_on_a_gpu_that_a_person_called_healthy_serves() -> None:
    fleet = Budgets()
    fleet.begin(grain="gpu")
    fleet.world.run(24)
    fleet.hit_everywhere(after=4, code="gpu_lost", gap=2, index=0)
    fleet.judge(after=24, verdict="right")
    fleet.drain(after=12, force=False, cut_short=False, index=None, name="n1")
    assert any(each.rule == "operator/drain" for each in fleet.world.core.view().actions)


def test_what_waited_for_the_end_of_a_pause_is_done_in_the_turn_that_ends_it() -> None:
    fleet = Budgets()
    fleet.begin(grain="node")
    fleet.world.run(24)
    fleet.order_everywhere(do="pause", after=2)
    fleet.hit(name="n1", index=0, code="gpu_lost", fence=False, after=24)
    assert not fleet.world.core.view().holds
    fleet.order_everywhere(do="resume", after=0)
    assert [each.rule for each in fleet.world.core.view().holds] == ["gpu_lost"]


Budgets.TestCase.settings = settings(
    max_examples=20,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestBudgets = Budgets.TestCase
