"""Replicas: where they are, how far their life has come, and the one word for each.

A replica is known from the line that started it, or (adopted) from the agent that reported it. Its life
follows from the actions on it; what it does now from its agent's last report.
"""

from enum import StrEnum

import msgspec

from controller.core.fleet import groups
from controller.core.fleet.kinds import STARTED
from controller.core.fleet.ledger import Ledger
from vocab.events import Scope
from vocab.lines import HoldLine, Subject
from vocab.messages import ReplicaStatus
from vocab.states import REPLICA_MOVES, ActionKind, ActionState, ReplicaState

CRASH_LOOP = "crash_loop"  # the reason that an agent gives when its attempt budget is used up


FAILED = frozenset({"replica_died", "replica_failed_cleanup"})
LEAVES_ALONE = frozenset({"placement_black_hole", "node_lost"})  # new work is kept off, what runs there is not touched
NODE_WIDE = frozenset({Scope.NODE})
FABRIC_WIDE = frozenset({Scope.FABRIC, Scope.SWITCH})
STANDING_STILL = frozenset({"replica_stalled", "collective_timeout"})


class Life(StrEnum):
    """What a replica is told: run, drain, stop; or it has ended."""

    RUN = "run"
    DRAIN = "drain"
    STOP = "stop"
    ENDED = "ended"


class Replica(msgspec.Struct):
    """One replica. ``start`` is the action that made it (None: adopted), ``status`` its agent's last word.

    A group over several nodes has the node of each GPU in ``places``, its leader in ``node``, the last words of its
    agents in ``parts`` by node, and what these add up to in ``status``. ``torn``: why it is a group no longer.
    """

    id: str
    deployment: str
    node: str
    gpus: tuple[str, ...]
    start: str | None = None
    status: ReplicaStatus | None = None
    looped: bool = False  # it was a crash loop: that stays its word
    observed: bool = False  # found on its node, started by somebody else: never signalled
    places: tuple[str, ...] = ()
    parts: dict[str, ReplicaStatus] = {}
    torn: str = ""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that it has members on; the first leads."""
        return tuple(dict.fromkeys(self.places)) if self.places else (self.node,)

    @property
    def is_group(self) -> bool:
        """Whether its members are on several nodes."""
        return bool(self.places)

    def part(self, node: str) -> ReplicaStatus | None:
        """What the agent of one of its nodes says of it."""
        return self.parts.get(node) if self.places else self.status

    def hear(self, node: str, said: ReplicaStatus | None) -> None:
        """An agent says how it is, or (None) names it no longer."""
        if not self.places:
            self.status = said
            return
        if said is None:
            self.parts.pop(node, None)
        else:
            if groups.was_lost(self.parts.get(node), said):
                self.torn = f"its member on {node} is gone"
            self.parts[node] = said
        self.status = groups.joined(self.nodes, self.parts)

    @property
    def subject(self) -> Subject:
        """As a subject of lines."""
        return Subject(replica=self.id)

    @property
    def is_dead(self) -> bool:
        """Whether its agent says that nothing runs any more."""
        return self.status is not None and self.status.phase == "stopped"

    @property
    def is_clean(self) -> bool:
        """Whether nothing of it is left: no process, no memory."""
        parts = [self.part(node) for node in self.nodes]
        return self.is_dead and all(part and groups.has_ended(part) and not part.leftovers for part in parts)

    @property
    def is_remains(self) -> bool:
        """Whether all that is left of it are processes that have not gone: nobody's work is in them."""
        return self.is_dead and not self.is_clean

    @property
    def is_absent(self) -> bool:
        """Whether its agent has no process of it: it does not list it, or has not started it once."""
        return self.status is None or (self.status.phase == "starting" and self.status.attempt == 0)

    @property
    def is_ready(self) -> bool:
        """Whether it serves new requests. One that stands still with work does not; one without work steps."""
        status = self.status
        return self.is_stepping and status is not None and status.phase == "ready" and status.ready and status.admitting

    @property
    def is_stepping(self) -> bool:
        """Whether it still does work, admitting or not: what a panic would fall back on."""
        status = self.status
        return status is not None and status.phase in {"ready", "draining"} and status.stepping


def life(ledger: Ledger, replica: Replica) -> Life:
    """How far its life has come, by the actions on it."""
    if replica.id not in ledger.told_to_go:
        return Life.RUN
    kinds = (ActionKind.DRAIN, ActionKind.STOP_REPLICA)
    actions = ledger.of_subject(replica.subject, *kinds)
    if replica.observed:  # its owner may go on with it, or start it again, whatever it was asked
        return Life.DRAIN if any(action.state in STARTED for action in actions) else Life.RUN
    if any(action.state is ActionState.DONE for action in actions):
        return Life.ENDED
    if any(a.of is ActionKind.STOP_REPLICA and a.state in STARTED | {ActionState.TIMED_OUT} for a in actions):
        return Life.STOP
    if any(a.of is ActionKind.DRAIN and a.state in STARTED | {ActionState.TIMED_OUT} for a in actions):
        return Life.DRAIN
    return Life.RUN


def incident_of(ledger: Ledger, replica: Replica) -> str | None:
    """The open incident whose policy hold takes this replica away, if a person has not cancelled that."""
    found = (hold.incident for hold in _against(ledger, replica))
    return next((incident for incident in found if not was_spared(ledger, replica, incident)), None)


def is_on_bad_gpu(ledger: Ledger, replica: Replica) -> bool:
    """Whether a member is held for a fault, even if a person has spared the replica."""
    return bool(_against(ledger, replica))


def _against(ledger: Ledger, replica: Replica) -> list[HoldLine]:
    """The policy's holds for open incidents that are about its GPUs, or about its node and so about it."""
    nodes = replica.nodes
    if ledger.held.isdisjoint(nodes) and ledger.held.isdisjoint(replica.gpus):
        return []
    holds = [hold for gpu in replica.gpus for hold in ledger.standing(Subject(gpu=gpu), "policy")]
    of_nodes = (hold for node in nodes for hold in ledger.standing(Subject(node=node), "policy"))
    holds += [hold for hold in of_nodes if _takes(ledger, hold, replica)]
    return [hold for hold in holds if hold.incident in ledger.open_incidents]


def _takes(ledger: Ledger, hold: HoldLine, replica: Replica) -> bool:
    """Whether the fault of a whole node takes what runs there: one of the fabric only what has several GPUs on it."""
    incident = ledger.incidents.get(hold.incident or "")
    if incident is None or incident.code in LEAVES_ALONE:
        return False
    scopes = {ledger.events[key].scope for key in incident.events if key in ledger.events}
    return len(replica.gpus) > 1 or not scopes & FABRIC_WIDE or bool(scopes & NODE_WIDE)


def was_spared(ledger: Ledger, replica: Replica, incident: str | None) -> bool:
    """Whether a person called off its drain for this incident."""
    drains = ledger.of_subject(replica.subject, ActionKind.DRAIN)
    return any(drain.incident == incident and drain.state is ActionState.CANCELLED for drain in drains)


def is_leaving(ledger: Ledger, replica: Replica) -> bool:
    """Whether it will go: its GPU is held for a fault, a drain was asked for, its node is lost, or it ends already."""
    if life(ledger, replica) is not Life.RUN or incident_of(ledger, replica) is not None:
        return True
    if not ledger.lost.isdisjoint(replica.nodes):
        return True
    if replica.id not in ledger.told_to_go:
        return False
    drains = ledger.of_subject(replica.subject, ActionKind.DRAIN)
    return any(drain.state is ActionState.WAITING for drain in drains)


def word(ledger: Ledger, replica: Replica) -> ReplicaState:
    """The one word for what it is doing."""
    stage = life(ledger, replica)
    status = replica.status
    if stage is Life.ENDED:
        return ReplicaState.CRASH_LOOP if replica.looped else ReplicaState.STOPPED
    codes = {ledger.conditions[key].code for key in ledger.conditions_of.get(replica.subject, ())}
    if status is not None and status.phase == "stopped":
        return ReplicaState.CRASH_LOOP if CRASH_LOOP in codes and stage is Life.RUN else _dead_word(stage, status)
    if stage in {Life.DRAIN, Life.STOP}:
        return ReplicaState.DRAINING
    if not ledger.lost.isdisjoint(replica.nodes):
        return ReplicaState.FAILED
    if _has_failed(ledger, replica, codes):
        return ReplicaState.CRASH_LOOP if CRASH_LOOP in codes else ReplicaState.FAILED
    if status is not None and status.phase == "draining":
        return ReplicaState.DRAINING
    if incident_of(ledger, replica) is not None and len(replica.gpus) > 1:
        return ReplicaState.STRANDED
    if status is None or status.phase != "ready":
        return ReplicaState.STARTING
    if not status.stepping or codes & STANDING_STILL:
        return ReplicaState.STALLED
    return ReplicaState.READY if replica.is_ready and status.healthy and not codes else ReplicaState.DEGRADED


def _has_failed(ledger: Ledger, replica: Replica, codes: set[str]) -> bool:
    """Whether a condition says that this life of it is over; a new one that starts is told apart."""
    status = replica.status
    if status is not None and status.phase == "starting" and status.exit is None:
        return False
    if codes & FAILED:
        return True
    events = (e for key in ledger.conditions_of.get(replica.subject, ()) for e in ledger.conditions[key].events)
    return any(bool(ledger.events[e].fields.get("outlived")) for e in events if e in ledger.events)


def _dead_word(stage: Life, status: ReplicaStatus) -> ReplicaState:
    if stage in {Life.DRAIN, Life.STOP}:
        return ReplicaState.STOPPED
    if status.exit is not None and status.exit.reason == CRASH_LOOP:
        return ReplicaState.CRASH_LOOP
    return ReplicaState.FAILED


def reachable(before: str | None, to: ReplicaState) -> ReplicaState | None:
    """``to`` if the table of moves lets it follow ``before``, the step between if there is one, else None."""
    if before is None or before == to:
        return to
    allowed = REPLICA_MOVES[ReplicaState(before)]
    if to in allowed:
        return to
    return next((step for step in _STEPS if step in allowed and to in REPLICA_MOVES[step]), None)


_STEPS = (ReplicaState.READY, ReplicaState.FAILED, ReplicaState.STARTING)  # what may lie between two looks
