"""The roster: which replicas there are, by name, GPU and deployment; which have departed, and which failed lately.

It is folded from lines like the ledger. Only what agents say of a replica (its status) is heard.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator

from controller.core.fleet.replicas import Replica
from vocab.lines import ActionLine, StateLine
from vocab.messages import ReplicaStatus
from vocab.observations import Member
from vocab.states import ActionKind, ActionState, ReplicaState

GAVE_UP = "replica/gave_up"  # the rule under which a replica that its agent no longer restarts is taken away
BROKEN = "replica/group_broken"  # ... a group of which a part has ended by itself, or which stands still
FAILURES_KEPT = 64  # of a deployment: many more than a window's budget
_FAILED = frozenset({ActionState.FAILED, ActionState.TIMED_OUT})
_ENDS = frozenset({ActionKind.DRAIN, ActionKind.STOP_REPLICA})


class Roster:
    """All replicas. ``living`` and ``departed`` are for reading."""

    def __init__(self) -> None:
        self.living: dict[str, Replica] = {}
        self.departed: dict[str, Replica] = {}
        self.ours: set[str] = set()  # deployments whose replicas we start
        self._on: dict[str, dict[str, None]] = defaultdict(dict)
        self._of: dict[str, dict[str, None]] = defaultdict(dict)
        self._at: dict[str, dict[str, None]] = defaultdict(dict)
        self._failures: dict[str, deque[tuple[float, str, tuple[str, ...]]]] = defaultdict(
            lambda: deque(maxlen=FAILURES_KEPT)
        )

    def fold(self, line: ActionLine | StateLine) -> None:
        """A replica was started, or found; it failed, or departed."""
        name = line.subject.replica
        if name is None:
            return
        begins = isinstance(line, StateLine) or line.of is ActionKind.START_REPLICA
        if begins and line.target is not None and self.find(name) is None:
            found = isinstance(line, StateLine) and line.observed
            where = line.target
            places = where.nodes
            self.add(Replica(name, line.deployment or "", where.node, where.gpus, observed=found, places=places))
        replica = self.find(name)
        if replica is None or isinstance(line, StateLine):
            if replica is not None and isinstance(line, StateLine):
                replica.looped = line.to == ReplicaState.CRASH_LOOP
                if replica.observed and line.to == ReplicaState.STOPPED:
                    self._remove(replica)  # not departed: its owner may start it again under this name
            return
        if line.of is ActionKind.START_REPLICA and line.target is not None:
            replica.start = line.id
            if line.state in _FAILED:
                self._fail(replica, line.at)
        elif line.of in _ENDS and line.state is ActionState.DONE and not replica.observed:
            if line.rule in {GAVE_UP, BROKEN} and line.incident is None:
                self._fail(replica, line.at)
            self._depart(replica)

    def add(self, replica: Replica) -> None:
        """One that runs, or will."""
        self.living[replica.id] = replica
        self._of[replica.deployment][replica.id] = None
        for node in replica.nodes:
            self._at[node][replica.id] = None
        for gpu in replica.gpus:
            self._on[gpu][replica.id] = None

    def _fail(self, replica: Replica, at: float) -> None:
        """It failed though nothing was wrong with its GPUs; once a replica."""
        failures = self._failures[replica.deployment]
        if all(name != replica.id for _, name, _ in failures):
            failures.append((at, replica.id, replica.gpus))

    def _depart(self, replica: Replica) -> None:
        self.departed[replica.id] = replica
        self._remove(replica)

    def _remove(self, replica: Replica) -> None:
        self.living.pop(replica.id, None)
        self._of[replica.deployment].pop(replica.id, None)
        for node in replica.nodes:
            self._at[node].pop(replica.id, None)
        for gpu in replica.gpus:
            self._on[gpu].pop(replica.id, None)

    def find(self, name: str | None) -> Replica | None:
        """The replica of this name, living or departed."""
        return self.living.get(name or "") or self.departed.get(name or "")

    def on(self, gpu: str | None) -> list[Replica]:
        """The living replicas on a GPU."""
        return [self.living[name] for name in self._on.get(gpu or "", ())]

    def of(self, deployment: str) -> list[Replica]:
        """The living replicas of a deployment, oldest first. Where we start them, what was found does not count."""
        found = [self.living[name] for name in self._of.get(deployment, ())]
        return [replica for replica in found if not replica.observed] if deployment in self.ours else found

    def at(self, node: str) -> list[Replica]:
        """The living replicas with a member on a node."""
        return [self.living[name] for name in self._at.get(node, ())]

    def failures(self, deployment: str, since: float) -> list[tuple[float, tuple[str, ...]]]:
        """When and on which GPUs replicas of a deployment failed after ``since``."""
        return [(at, gpus) for at, _, gpus in self._failures.get(deployment, ()) if at > since]

    def hear(
        self, node: str, statuses: tuple[ReplicaStatus, ...], is_anothers: Callable[[str, Member], bool]
    ) -> Iterator[Replica]:
        """What an agent says of its replicas; those of which it says something new. An unknown one is adopted.

        ``is_anothers``: whether a member is on a GPU of which another agent speaks; no agent adopts anything there.
        """
        for status in statuses:
            replica = self.living.get(status.replica)
            gpus = tuple(member.gpu for member in status.members if not is_anothers(node, member))
            if replica is None and status.replica not in self.departed and gpus and status.phase != "stopped":
                replica = self._adopt(node, status, gpus)
            elif replica is not None and replica.observed and node == replica.node and _moved(replica, status, gpus):
                self._remove(replica)  # its server loads on one GPU after the other, or its owner changed it
                replica = self._adopt(node, status, gpus)
            elif replica is not None and _is_told_beside(replica, node, status):
                replica = self._join(replica, node, status)
            if replica is not None and node in replica.nodes:
                before = replica.part(node)
                replica.hear(node, status)
                if before is None or _essence(before) != _essence(status):
                    yield replica

    def _adopt(self, node: str, status: ReplicaStatus, gpus: tuple[str, ...]) -> Replica:
        """One that is unknown. Whoever speaks of it first speaks for all of it of which nobody else does."""
        replica = Replica(status.replica, status.deployment, node, gpus, observed=status.observed)
        self.add(replica)
        return replica

    def _join(self, replica: Replica, node: str, status: ReplicaStatus) -> Replica:
        """A second agent speaks of one that was adopted: each of them speaks for its own part of a group."""
        self._remove(replica)
        members = sorted(status.members, key=lambda member: member.rank)
        places, gpus = zip(*((member.node, member.gpu) for member in members), strict=True)
        group = Replica(replica.id, status.deployment, places[0], gpus, start=replica.start, places=places)
        self.add(group)
        group.hear(replica.node, replica.status)
        return group

    def tear(self, node: str) -> None:
        """A node has booted: its parts of groups are gone, and no agent starts one part anew."""
        for replica in self.at(node):
            if replica.is_group:
                replica.torn = replica.torn or f"{node} has booted"

    def miss(self, node: str, listed: set[str]) -> Iterator[Replica]:
        """The replicas that their agent named before and names no longer."""
        for replica in self.at(node):
            if replica.id not in listed and replica.part(node) is not None:
                replica.hear(node, None)
                yield replica


def _is_told_beside(replica: Replica, node: str, status: ReplicaStatus) -> bool:
    """Whether an agent speaks of a part of what another one was taken to speak for, and both of them say so."""
    if replica.is_group or replica.observed or replica.start is not None or node == replica.node:
        return False  # of what we started we know the places
    both = {node, replica.node}
    before = replica.status.members if replica.status is not None else ()
    return all(both <= {member.node for member in members} for members in (status.members, before))


def _moved(replica: Replica, status: ReplicaStatus, gpus: tuple[str, ...]) -> bool:
    """Whether it is on other GPUs, or serves another model, than what is known of it."""
    return bool(gpus) and (gpus != replica.gpus or status.deployment != replica.deployment)


def _essence(status: ReplicaStatus) -> tuple[object, ...]:
    """What a decision can rest on; counts of requests change with every look and decide nothing."""
    said = status.phase, status.ready, status.admitting, status.stepping, status.token, status.exit, status.url
    return (*said, status.healthy, status.leftovers, status.released, status.observed, status.members)
