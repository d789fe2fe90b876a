"""The place of a fault: what its hold keeps out of work. Its GPU; for a fault of a node or a fabric, the node."""

from controller.core.fleet import Fleet
from controller.core.ladder import needs_repair
from controller.core.replicas import FABRIC_WIDE, NODE_WIDE
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
    events = [fleet.ledger.events[key] for key in incident.events if key in fleet.ledger.events]
    grave = [event for event in events if needs_repair(event.severity, event.recovery)]
    grave = [event for event in grave if not fleet.row(event.code).blocks]  # it keeps new work off, and serving goes on
    if not events and needs_repair(incident.severity, incident.recovery):  # pruned: what it was opened for still holds
        return incident.subject if incident.subject.replica is None else None
    node = node_of(fleet, incident)
    if node is not None and any(is_wide(fleet, event) for event in grave):
        return Subject(node=node)
    return incident.subject if incident.subject.gpu is not None and grave else None


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
