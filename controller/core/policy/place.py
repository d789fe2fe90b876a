"""The place of a fault: what its hold keeps out of work. Its GPU; for a fault of a node or a fabric, the node.

And whose rule decides: an incident may be of several codes. What a rule in shadow asks for counts only where no other
asks for anything, and then all that is done for it is said and not done.
"""

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.ladder import needs_repair
from controller.core.fleet.replicas import FABRIC_WIDE, NODE_WIDE
from controller.core.policy import shadow
from vocab.events import Event
from vocab.lines import IncidentLine, Subject

WIDE = NODE_WIDE | FABRIC_WIDE


def node_of(fleet: Fleet, incident: IncidentLine) -> str | None:
    """The node that a fault is on."""
    gpu = fleet.gpus.get(incident.subject.gpu or "")
    if gpu is not None:
        return gpu.node
    root = fleet.ledger.events.get(incident.root)
    return incident.subject.node or (root.node if root is not None else None)


def place_of(fleet: Fleet, incident: IncidentLine) -> Subject | None:
    """What must leave service for it; None if nothing must, or if nobody knows which GPU it is."""
    if is_pruned(fleet, incident) and needs_repair(incident.severity, incident.recovery):
        return incident.subject if incident.subject.replica is None else None
    found, node = grave(fleet, incident), node_of(fleet, incident)
    if node is not None and any(is_wide(fleet, event) for event in found):
        return Subject(node=node)
    return incident.subject if incident.subject.gpu is not None and found else None


def is_pruned(fleet: Fleet, incident: IncidentLine) -> bool:
    """Whether it is so old that none of its events is known any more: what it was opened for still holds."""
    return not any(key in fleet.ledger.events for key in incident.events)


def grave(fleet: Fleet, incident: IncidentLine) -> list[Event]:
    """The events for which something must leave service: of rules that act, or else those of rules in shadow.

    What merely blocks new work (a driver whose library was replaced under it) is none of them: serving goes on.
    """
    events = [fleet.ledger.events[key] for key in incident.events if key in fleet.ledger.events]
    found = [event for event in events if needs_repair(event.severity, event.recovery)]
    found = [event for event in found if not fleet.row(event.code).blocks]
    acting = [event for event in found if shadow.why(fleet, event.code, event.node, event.gpu) is None]
    return acting or found


def code_of(fleet: Fleet, incident: IncidentLine) -> str:
    """The code whose rule decides for an incident: its root's, unless what asks for something is another's."""
    found = grave(fleet, incident)
    if not found or any(event.code == incident.code for event in found):
        return incident.code
    acts = shadow.why(fleet, found[0].code, found[0].node, found[0].gpu) is None
    if acts == (shadow.why(fleet, incident.code, node_of(fleet, incident) or "", incident.subject.gpu) is None):
        return incident.code
    return max(found, key=lambda event: (event.severity.rank, event.recovery.rank)).code


def is_wide(fleet: Fleet, event: Event) -> bool:
    """Whether an event is about more than one GPU, by its code too: a missing GPU without a name is not a sick node.

    A fabric error that names a GPU is of that GPU's own end of a link: it alone is reset, its neighbours work on.
    """
    of_one = event.gpu is not None and event.scope in FABRIC_WIDE
    return event.scope in WIDE and fleet.row(event.code).scope in WIDE and not of_one


def gpus_of(fleet: Fleet, place: Subject) -> list[str]:
    """The GPUs that are out of service while the place is held."""
    if place.gpu is not None:
        return [place.gpu]
    return [gpu.identity.uuid for gpu in fleet.gpus_at(place.node or "")]
