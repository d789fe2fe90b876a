"""The fleet: the ledger, what nodes last said, and the questions that every rule asks of both.

Rules read it and yield lines; ``fold`` takes these in. What was heard of nodes is not in any line: after a
restart nodes say it again, and until they have, ``is_settled`` and ``knows`` keep harmful acts back.
"""

from collections.abc import Callable

from controller.core import replicas
from controller.core.ledger import Ledger
from controller.core.nodes import Gpu, Node
from controller.core.replicas import Life, Replica
from controller.core.roster import Roster
from controller.core.settings import COLD_START_S, Settings
from controller.core.stimuli import Deployment
from vocab.catalogue.row import CodeRow
from vocab.events import Recovery, Severity
from vocab.lines import ActionLine, AnyLine, ConditionLine, HoldLine, StateLine, Subject
from vocab.messages import GpuStatus, NodeFacts, ReplicaStatus
from vocab.states import Health, Level, NodeState, ReplicaState

LOST_CODES = frozenset({"xid:79", "gpu_lost", "gpu_missing"})  # gone from the bus or from its driver
MISSING_AT_START = 0.1  # of the nodes that were live, this part may stay silent (one node always)


class Fleet:
    """Everything that a decision may look at."""

    def __init__(self, settings: Settings, row: Callable[[str], CodeRow]) -> None:
        self.settings = settings
        self.row = row
        self.ledger = Ledger()
        self.nodes: dict[str, Node] = {}
        self.gpus: dict[str, Gpu] = {}
        self.deployments: dict[str, Deployment] = {}
        self.pools: dict[str, tuple[str, ...]] = {}  # name -> its nodes
        self.domains: dict[str, tuple[str, ...]] = {}  # failure domain -> its nodes
        self.roster = Roster()
        self.touched: dict[Subject, None] = {}  # whose word may have changed
        self.stirred = False  # something was heard that rules must look at
        self.began_at: float | None = None
        self._awaited: frozenset[str] = frozenset()

    # -- what comes in --------------------------------------------------------------------------------

    def fold(self, line: AnyLine) -> None:
        """Take a decision in."""
        self.ledger.fold(line)
        if isinstance(line, ActionLine | StateLine):
            self.roster.fold(line)
        if not isinstance(line, StateLine):
            self.touch(line.subject)

    def begin(self, now: float) -> None:
        """The first moment of this life: from here, nodes that were live are waited for."""
        if self.began_at is None:
            self.began_at = now
            live = [s.node for s, word in self.ledger.words.items() if s.node is not None and word == NodeState.LIVE]
            self._awaited = frozenset(node for node in live if node is not None)

    def node(self, name: str) -> Node:
        """The node of this name, known from now on."""
        return self.nodes.setdefault(name, Node(name))

    def learn(self, facts: NodeFacts, now: float) -> None:
        """A node's inventory: GPUs that it no longer lists are no longer ours to place on."""
        self.node(facts.node).facts = facts
        listed = {identity.uuid for identity in facts.gpus}
        for uuid in [uuid for uuid, gpu in self.gpus.items() if gpu.node == facts.node and uuid not in listed]:
            if not self.ledger.conditions_of.get(Subject(gpu=uuid)):
                del self.gpus[uuid]
        for identity in facts.gpus:
            known = self.gpus.get(identity.uuid)
            if known is None or known.node != facts.node:
                self.gpus[identity.uuid] = Gpu(identity, facts.node, now, facts.period_s)
            else:
                known.identity, known.period_s = identity, facts.period_s
            self.touch(Subject(gpu=identity.uuid))

    def sample(self, statuses: tuple[GpuStatus, ...], now: float) -> bool:
        """Readings of GPUs; True if one began or ceased to answer."""
        moved = [s.gpu for s in statuses if s.gpu in self.gpus and self.gpus[s.gpu].take(s, now)]
        for uuid in moved:
            self.touch(Subject(gpu=uuid))
        return bool(moved)

    def list_replicas(self, node: str, statuses: tuple[ReplicaStatus, ...], now: float, *, whole: bool) -> bool:
        """A node's list; True if it tells anything new."""
        first = whole and self.node(node).replicas_at is None
        moved = list(self.roster.hear(node, statuses))
        if whole:
            self.node(node).replicas_at = now
            moved += self.roster.miss(node, {status.replica for status in statuses})
        for replica in moved:
            self.touch(replica.subject)
        ending = any(self.life(replica) is not Life.RUN for replica in self.roster.at(node))
        return first or bool(moved) or ending

    def touch(self, subject: Subject) -> None:
        """Its word, and that of what shares its GPUs, may have changed."""
        self.touched[subject] = None
        if subject.gpu is not None:
            for replica in self.roster.on(subject.gpu):
                self.touched[replica.subject] = None
        elif (known := self.roster.find(subject.replica)) is not None:
            for gpu in known.gpus:
                self.touched[Subject(gpu=gpu)] = None

    # -- what rules ask -------------------------------------------------------------------------------

    def is_settled(self, now: float) -> bool:
        """Whether the start is over: nodes that were live have been heard, or waited for long enough."""
        silent = [name for name in self._awaited if not self.node(name).was_heard]
        if not silent:
            return True
        waited = self.began_at is not None and now >= self.began_at + COLD_START_S
        return waited and len(silent) <= max(1, int(MISSING_AT_START * len(self._awaited)))

    def knows(self, node: str, now: float) -> bool:
        """Whether what runs on a node is known: it said so, is new to us, or was waited for long enough."""
        if node not in self._awaited or self.node(node).replicas_at is not None:
            return True
        return self.began_at is not None and now >= self.began_at + COLD_START_S

    def may_place(self, now: float) -> bool:
        """Whether what runs anywhere is known well enough to start more of it."""
        return bool(self.nodes) and all(self._has_told(node, now) for node in self.nodes.values())

    def _has_told(self, node: Node, now: float) -> bool:
        since = max(self.began_at or 0.0, node.facts_at or 0.0)
        return node.replicas_at is not None or now >= since + COLD_START_S

    def level(self, node: str) -> Level | None:
        """What automation may do there; None while the node has not said."""
        facts = self.node(node).facts
        if facts is None:
            return None
        return min(facts.level, self.settings.level, key=lambda level: list(Level).index(level))

    def life(self, replica: Replica) -> Life:
        """How far a replica's life has come."""
        return replicas.life(self.ledger, replica)

    def word_of(self, replica: Replica) -> ReplicaState:
        """A replica's word; after a restart the last one, until its node has been heard again."""
        last = self.ledger.words.get(replica.subject)
        if last is not None and self.node(replica.node).replicas_at is None:
            return ReplicaState(last)
        return replicas.word(self.ledger, replica)

    def holds_on(self, gpu: str) -> list[HoldLine]:
        """The holds that keep work off a GPU: its own and its node's."""
        node = self.gpus[gpu].node if gpu in self.gpus else None
        return self.ledger.standing(Subject(gpu=gpu)) + (self.ledger.standing(Subject(node=node)) if node else [])

    def conditions_on(self, subject: Subject) -> list[ConditionLine]:
        """The open conditions of a subject."""
        return [self.ledger.conditions[key] for key in self.ledger.conditions_of.get(subject, ())]

    def recovery(self, condition: ConditionLine) -> Recovery:
        """The harshest advice of a condition's events."""
        events = [self.ledger.events[key] for key in condition.events if key in self.ledger.events]
        return max((e.recovery for e in events), key=lambda r: r.rank, default=self.row(condition.code).recovery)

    def health(self, gpu: str) -> Health:
        """What the open conditions say of a GPU."""
        found = self.conditions_on(Subject(gpu=gpu))
        if any(condition.code in LOST_CODES for condition in found):
            return Health.LOST
        if any(needs_repair(condition.severity, self.recovery(condition)) for condition in found):
            return Health.FAILED
        return Health.DEGRADED if found else Health.HEALTHY

    def node_state(self, node: str) -> str:
        """The node's word; live until said otherwise."""
        return self.ledger.words.get(Subject(node=node), NodeState.LIVE.value)


def needs_repair(severity: Severity, recovery: Recovery) -> bool:
    """Whether a fault takes its GPU out of service: at least an error, and at least a reset is advised."""
    return severity.rank >= Severity.ERROR.rank and recovery.rank >= Recovery.DRAIN_AND_RESET.rank
