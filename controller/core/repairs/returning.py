"""A node that was lost and is back: nobody knows what happened to it, so it takes no work until it is validated.

Its replicas were placed elsewhere; those that still run on it are now too many, and drain.
"""

from collections.abc import Iterator

from controller.core.fleet.fleet import Fleet
from controller.core.policy.place import node_of
from controller.core.policy.policy import OWNER, Leave, may
from controller.core.repairs.holds import key_of, standing_for
from vocab.lines import AnyLine, HoldLine, IncidentLine, Subject
from vocab.states import ClearsOn, Level, NodeState

RETURNED = "returned_unexplained"
LOST = "node_lost"


def is_back(fleet: Fleet, incident: IncidentLine, _now: float) -> bool:
    """Whether the node reports again."""
    return fleet.node_state(node_of(fleet, incident) or "") == NodeState.LIVE


def is_received(fleet: Fleet, incident: IncidentLine, _now: float) -> bool:
    """Whether it is held, or was, or would be: a person who lifts that hold has decided."""
    return standing_for(fleet, incident) is not None or key_of(fleet, incident) is None or _was_said(fleet, incident)


def is_held(fleet: Fleet, incident: IncidentLine) -> bool:
    """Whether it is held still."""
    return standing_for(fleet, incident) is not None


def _was_said(fleet: Fleet, incident: IncidentLine) -> bool:
    return bool(fleet.ledger.would_of.get(incident.id))


def receive(fleet: Fleet, incident: IncidentLine, now: float) -> Iterator[AnyLine]:
    """Hold the node, or say that it would be held."""
    node, key = node_of(fleet, incident), key_of(fleet, incident)
    verdict = may(fleet, node or "", Level.CORDON, now, incident)
    if key is None or verdict.leave is Leave.LATER:
        return
    go = verdict.leave is Leave.GO
    reason = f"{RETURNED}: the node was lost and reports again"
    yield HoldLine(
        at=now,
        subject=Subject(node=node),
        id=key,
        op="placed" if go else "would_place",
        owner=OWNER,
        reason=reason if go else f"{reason}; not now: {verdict.why}",
        incident=incident.id,
        clears_on=ClearsOn.PERSON,
        rule=LOST,
    )
