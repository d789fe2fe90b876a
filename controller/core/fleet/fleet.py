"""The fleet: the ledger, what nodes last said, and the questions that every rule asks of both.

Rules read it and yield lines; ``fold`` takes these in. What was heard of nodes is not in any line: after a
restart nodes say it again, and until they have, ``patience`` keeps harmful acts back.
"""

from collections import defaultdict
from collections.abc import Callable

from controller.core.fleet import remind, replicas
from controller.core.fleet.agenda import Agenda
from controller.core.fleet.along import Along
from controller.core.fleet.claims import CODE as CLAIMED
from controller.core.fleet.claims import uuid_of
from controller.core.fleet.free import Free
from controller.core.fleet.inventory import Inventory
from controller.core.fleet.ladder import needs_repair
from controller.core.fleet.ledger import FLEET, TOO_MUCH, Ledger
from controller.core.fleet.managers import Managers
from controller.core.fleet.nodes import Gpu, Node
from controller.core.fleet.patience import Patience
from controller.core.fleet.precision import Records
from controller.core.fleet.replicas import Life, Replica
from controller.core.fleet.ripples import Ripples
from controller.core.fleet.roster import Roster
from controller.core.fleet.settings import COLD_START_S, MEMORY_LEAST_S, MEMORY_PERIODS, Rule, Settings, lowest
from controller.core.fleet.stimuli import Deployment
from controller.core.fleet.versions import Versions, parts_of
from controller.core.fleet.work import Work
from vocab.catalogue.row import CodeRow
from vocab.events import Event, Recovery, Scope
from vocab.lines import (
    ActionLine,
    AnyLine,
    ConditionLine,
    EventLine,
    HoldLine,
    IncidentLine,
    NoteLine,
    StateLine,
    Subject,
)
from vocab.messages import GpuStatus, NodeFacts, ReplicaStatus
from vocab.observations import Member
from vocab.states import REPAIRS, ActionState, Health, Level, NodeState, ReplicaState

_UNPROVEN = frozenset({None, ReplicaState.STARTING.value})  # states of a replica before it was ever ready
Division = dict[str, tuple[str, ...]]  # a name, and its nodes
BENEATH = frozenset({Scope.MIG, Scope.PROCESS})
LOST_CODES = frozenset({"xid:79", "gpu_lost", "gpu_missing"})  # gone from the bus or from its driver


class Fleet:
    """Everything that a decision may look at."""

    def __init__(self, settings: Settings, row: Callable[[str], CodeRow]) -> None:
        self.settings = settings
        self._row = row
        self.ledger = Ledger()
        self.agenda = Agenda()
        self.work = Work()
        self.nodes: dict[str, Node] = {}
        self.gpus: dict[str, Gpu] = {}
        self.deployments: dict[str, Deployment] = {}
        self.pools: Division = {}
        self.domains: Division = {}  # failure domains
        self.powered: frozenset[str] = frozenset()  # nodes whose power is in our hands
        self.versions = Versions()
        self.managers = Managers()
        self.roster = Roster()
        self.records = Records()
        self.free, self.along = Free({}), Along()
        self.doubted: dict[str, None] = {}  # silent nodes of which we doubt that they are lost
        self.is_tick = False  # all that was seen at this moment has been taken in
        self.forgetful: dict[str, float] = {}  # nodes that may not know what they opened -> when that is settled
        self.stirred = False  # something was heard that rules must look at
        self.patience = Patience(self.nodes)
        self._known = (False, False)  # whether a start is over, and what runs anywhere is known
        self._pool_of: dict[str, str] = {}
        at: dict[str, dict[str, None]] = defaultdict(dict)
        ripples = Ripples(self.ledger, self.roster, self.work, self.nodes, self.gpus, at, self.deployments)
        self.touch, self.touch_all, self.restless = ripples.touch, ripples.touch_all, ripples.restless
        self.inventory = Inventory(self.ledger, self.agenda, self.work, self.nodes, self.gpus, at, self.touch)
        self.gpus_at, self.size = self.inventory.at, self.inventory.size

    def fold(self, line: AnyLine) -> None:
        """Take a decision in."""
        self.ledger.fold(line)
        if not isinstance(line, EventLine):  # most lines are one: what follows from it is for rules to say
            self._fold_places(line)
            self._fold_work(line)
        if not isinstance(line, StateLine) or line.subject.node is not None:
            every = self.work.all_untold
            self.touch(line.subject)
            if isinstance(line, ConditionLine | NoteLine) and line.code == TOO_MUCH:
                self.work.all_untold = every  # doubt changes what may be begun, not what any node was told

    def _fold_work(self, line: AnyLine) -> None:
        """What is due later, and which rules have something to look at."""
        if isinstance(line, ActionLine):
            self.along.fold(self.ledger, line)
            remind.of_action(self.agenda, self.settings, self.ledger, line)
            for subject in line.disrupts:
                self.touch(subject)
            if line.target is not None:
                self.touch(Subject(node=line.target.node))
            if line.of in REPAIRS and line.state is not ActionState.WOULD:
                self.work.turn(None)  # room in the budget, or none any more
        elif isinstance(line, HoldLine):
            remind.of_hold(self.agenda, self.settings, line)
            incident = self.ledger.incidents.get(line.incident or "")
            if line.op == "lifted":
                self.work.turn(None)  # room for another
            if incident is not None:
                self.work.rules[line.rule or incident.code] = None
        elif isinstance(line, NoteLine) and line.rule is not None:
            self.work.rules[line.rule] = None
        elif isinstance(line, IncidentLine):
            self.work.stir(line.id)
            remind.of_incident(self.agenda, line)

    def _fold_places(self, line: AnyLine) -> None:
        """What is where."""
        if isinstance(line, ActionLine | StateLine):
            self.roster.fold(line)
        if isinstance(line, StateLine) and line.to == ReplicaState.READY and line.from_ in _UNPROVEN:
            self._started(line)
        if isinstance(line, ConditionLine) and line.code == CLAIMED:
            self.inventory.settle(uuid_of(line.device), line.at)

    def _started(self, line: StateLine) -> None:
        """A replica has become ready: its node and GPUs can carry one."""
        replica = self.roster.find(line.subject.replica)
        if replica is not None:
            nodes, gpus = replica.nodes, replica.gpus
            places = (*(Subject(node=node) for node in nodes), *(Subject(gpu=gpu) for gpu in gpus))
            self.ledger.started_at |= dict.fromkeys(places, line.at)

    def begin(self, now: float) -> None:
        """The first moment of this life: from here, nodes that were live are waited for."""
        if self.patience.begin(self.ledger.words, now):
            self.agenda.remind(now + COLD_START_S, FLEET)
            for name in sorted(subject.node for subject in self.ledger.words if subject.node is not None):
                node = self.node(name)
                node.awaited_from = now
                self.agenda.watch(Subject(node=name), node.silent_at)

    def look_up(self, now: float) -> None:
        """Look at what has waited once what was waited for after a start has come."""
        before, self._known = self._known, (self.patience.is_settled(now), self.patience.may_place(now))
        if any(now_known and not was for was, now_known in zip(before, self._known, strict=True)):
            self.stirred = True
            self.work.deployments |= dict.fromkeys(self.deployments)
            self.work.turn(None)

    def node(self, name: str) -> Node:
        """The node of this name, known from now on."""
        known = self.nodes.get(name)
        if known is None:
            known = self.nodes[name] = Node(name)
            self.patience.expect(name)
        return known

    def learn(self, facts: NodeFacts, now: float) -> None:
        """What a node says of itself."""
        node = self.node(facts.node)
        booted = node.facts is not None and node.facts.boot_id != facts.boot_id
        if node.facts is None or booted:
            self.work.booted[facts.node] = None
        since = node.facts.remembers_since if node.facts is not None else None
        if self.versions.put(facts.node, self.pool_of(facts.node), parts_of(facts)):
            self.work.versions[facts.node] = None
        node.facts = facts
        self.inventory.take(facts, now, booted=booted)
        if facts.remembers_since is not None and facts.remembers_since != since:
            self.doubt_memory(facts, now)
        if booted:
            self.roster.tear(facts.node)
        self.touch(Subject(node=facts.node))

    def doubt_memory(self, facts: NodeFacts, now: float) -> None:
        """Give a node the time to see again what it may have forgotten."""
        due = now + max(MEMORY_LEAST_S, MEMORY_PERIODS * facts.period_s)
        self.forgetful[facts.node] = due
        self.agenda.remind(due, Subject(node=facts.node))

    def sample(self, statuses: tuple[GpuStatus, ...], now: float) -> bool:
        """Readings of GPUs; True if one began or ceased to answer."""
        moved = []
        for status in statuses:
            gpu = self.gpus.get(status.gpu)
            if gpu is None:
                continue
            self.work.readings[gpu.node] = None
            if gpu.take(status, now):
                moved.append(status.gpu)
            self.inventory.watch(gpu)
        for uuid in moved:
            self.touch(Subject(gpu=uuid))
        return bool(moved)

    def list_replicas(self, node: str, statuses: tuple[ReplicaStatus, ...], now: float, *, whole: bool) -> bool:
        """A node's list; True if it tells anything new."""
        first = whole and self.node(node).replicas_at is None
        self.work.readings[node] = None
        moved = list(self.roster.hear(node, statuses, self._is_anothers))
        if whole:
            self.node(node).replicas_at = now
            moved += self.roster.miss(node, {status.replica for status in statuses})
        if first:
            self.touch(Subject(node=node))
        for replica in moved:
            self.touch(replica.subject)
        ending = any(self.life(replica) is not Life.RUN for replica in self.roster.at(node))
        return first or bool(moved) or ending

    def _is_anothers(self, node: str, member: Member) -> bool:
        """Whether a member of a replica of which ``node`` speaks is on a GPU of a node that tells itself what runs."""
        known = self.gpus.get(member.gpu)
        owner = self.nodes.get(known.node if known is not None else member.node)
        if owner is None or owner.name == node:
            return False
        return member.node == node or owner.replicas_at is not None

    def expire(self, now: float) -> bool:
        """Touch what is due by ``now``; True if anything was."""
        due, every = self.agenda.take(now), self.work.all_untold
        for subject in due:
            if subject.gpu in self.gpus:
                self.gpus[subject.gpu].watched = False
            self.touch(subject)
        self.work.all_untold = every  # that time has passed alone is nothing to tell: what rules make of it is
        return bool(due)

    def level(self, node: str) -> Level | None:
        """What automation may do there; None while the node has not said."""
        facts = self.node(node).facts
        if facts is None:
            return None
        pool = self.settings.pools.get(self.pool_of(node) or "")
        most = pool.level if pool is not None and pool.level is not None else Level.REPAIR
        return lowest(facts.level, self.settings.level, most)

    def pool_of(self, node: str) -> str | None:
        """The pool that a node is in, if any."""
        return self._pool_of.get(node)

    def divide(self, pools: Division, domains: Division, spares: dict[str, int]) -> None:
        """How the fleet is divided from now on, and how many GPUs each pool keeps for replacements."""
        self.pools, self.domains, self.free = pools, domains, Free(spares)
        self._pool_of = {node: pool for pool, nodes in pools.items() for node in nodes}
        for facts in filter(None, (node.facts for node in self.nodes.values())):
            self.work.versions[facts.node] = None
            self.versions.put(facts.node, self.pool_of(facts.node), parts_of(facts))
        self.touch_all()

    def row(self, code: str) -> CodeRow:
        """The catalogue's row of a code, as its rule acts."""
        return self.settings.row(self._row(code))

    def weighed(self, event: Event) -> Event:
        """The event as the policy weighs it."""
        known = self.gpus.get(event.gpu or "")
        return self.settings.weighed(event, self.pool_of(event.node), (known.identity.name if known else None) or "")

    def rule(self, code: str, node: str, gpu: str | None) -> Rule:
        """What the policy says of a code there that the catalogue does not."""
        known = self.gpus.get(gpu or "")
        return self.settings.rule(code, self.pool_of(node), (known.identity.name if known else None) or "")

    def life(self, replica: Replica) -> Life:
        """How far a replica's life has come."""
        return replicas.life(self.ledger, replica)

    def word_of(self, replica: Replica) -> ReplicaState:
        """A replica's word; after a restart the last one, until its node has been heard again."""
        last = self.ledger.words.get(replica.subject)
        if last is not None and any(self.node(node).replicas_at is None for node in replica.nodes):
            return ReplicaState(last)
        return replicas.word(self.ledger, replica)

    def holds_on(self, gpu: str) -> list[HoldLine]:
        """The holds that keep work off a GPU: its own and its node's."""
        node = self.gpus[gpu].node if gpu in self.gpus else None
        return self.ledger.standing(Subject(gpu=gpu)) + (self.ledger.standing(Subject(node=node)) if node else [])

    def is_clear(self, gpu: str) -> bool:
        """Whether nothing stands on a GPU or its node, as on nearly all: whoever asks need not look further."""
        known, marked = self.gpus.get(gpu), self.ledger.marked
        return gpu not in marked["gpu"] and (known is None or known.node not in marked["node"])

    def conditions_on(self, subject: Subject) -> list[ConditionLine]:
        """The open conditions of a subject."""
        return [self.ledger.conditions[key] for key in self.ledger.conditions_of.get(subject, ())]

    def recovery(self, condition: ConditionLine) -> Recovery:
        """The harshest advice of a condition's events."""
        events = [self.ledger.events[key] for key in condition.events if key in self.ledger.events]
        return max((e.recovery for e in events), key=lambda r: r.rank, default=self.row(condition.code).recovery)

    def health(self, gpu: str) -> Health:
        """What the open conditions say of a GPU. Those of an instance or a process on it say nothing of the whole."""
        if not self.ledger.conditions_of.get(Subject(gpu=gpu)):
            return Health.HEALTHY
        found = [one for one in self.conditions_on(Subject(gpu=gpu)) if self.row(one.code).scope not in BENEATH]
        if any(condition.code in LOST_CODES for condition in found):
            return Health.LOST
        believed = [condition for condition in found if not self.ledger.is_taken_back(condition.events)]
        if any(needs_repair(condition.severity, self.recovery(condition)) for condition in believed):
            return Health.FAILED
        return Health.DEGRADED if found else Health.HEALTHY

    def is_blocked(self, gpu: str) -> bool:
        """Whether a condition of it or of its node keeps new work off, without a hold."""
        node = self.gpus[gpu].node if gpu in self.gpus else None
        found = self.conditions_on(Subject(gpu=gpu)) + (self.conditions_on(Subject(node=node)) if node else [])
        return any(self.row(condition.code).blocks for condition in found)

    def has_left(self, gpu: str) -> bool:
        """Whether it was taken away on purpose (replaced, or given to a virtual machine) and is not back."""
        return gpu in self.ledger.left and gpu in self.gpus and not self.gpus[gpu].listed

    def node_state(self, node: str) -> str:
        """The node's word; live until said otherwise."""
        return self.ledger.words.get(Subject(node=node), NodeState.LIVE.value)

    def is_fresh(self, gpu: Gpu, now: float) -> bool:
        """Whether what is known of a GPU is so now: its reading is young enough, and its node is heard."""
        return gpu.is_fresh(now) and self.node_state(gpu.node) == NodeState.LIVE
