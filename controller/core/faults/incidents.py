"""Incidents: which events are one fault.

An event belongs to an open incident if it names one of its events as its cause, if its code is a known
effect of a code in it, or if it is about the same GPU and came within a minute, or while the GPU is held
anyway (one repair ends both). Otherwise an error with a condition opens an incident of its own; but a count that
differs by GPUs that are each told to be missing is none beside theirs.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from controller.core.faults import suspects
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.names import incident_id
from controller.core.fleet.settings import CORRELATION_S
from controller.core.policy.policy import OWNER, is_momentary, opens_incident, subject_of, wants_hold
from vocab.events import UNKNOWN_SLOT, Event, Recovery, Severity
from vocab.lines import ConditionLine, IncidentLine, Subject

# effect: causes. Seen in the other order the cause becomes the root. Of one node, not only of one GPU.
EXPLAINED_BY: dict[str, frozenset[str]] = {
    "gpu_lost": frozenset({"xid:79", "xid:119", "xid:120", "xid:154"}),
    "gpu_missing": frozenset({"xid:79", "gpu_lost", "xid:154"}),
    "gpu_count_mismatch": frozenset({"gpu_missing", "gpu_lost", "xid:79"}),
}


def judge(fleet: Fleet, event: Event, now: float) -> Iterator[IncidentLine]:
    """The line that an event asks for, if any; its condition (if it opens one) is folded already."""
    ledger = fleet.ledger
    before = ledger.incidents_of_event.get(event.id, [])
    known = next((key for key in before if key in ledger.open_incidents), None)
    if known is not None:
        yield from _grow(fleet, ledger.incidents[known], event, now)
        return
    if not ledger.is_new(event, before):
        return
    stands, momentary = _has_condition(fleet, event), is_momentary(fleet, event)
    joined = _explained(fleet, event) or (_beside(fleet, event, now) if stands or momentary else None)
    if joined is not None:
        yield from _grow(fleet, joined, event, now)
    elif (stands and opens_incident(event) and not _only_counts(event)) or momentary:
        yield _open(event, incident_id(event.id, len(before)), now)


def _has_condition(fleet: Fleet, event: Event) -> bool:
    conditions = fleet.ledger.conditions
    return any(conditions[key].state != "cleared" for key in fleet.ledger.conditions_of_event.get(event.id, ()))


def _only_counts(event: Event) -> bool:
    """Whether an event sums up what other events say of each GPU: fewer are there, and which ones is known."""
    missing = event.fields.get("missing") or (UNKNOWN_SLOT,)
    return event.code == "gpu_count_mismatch" and UNKNOWN_SLOT not in missing


def _explained(fleet: Fleet, event: Event) -> IncidentLine | None:
    """The open incident that holds the event's cause: the one that it names, or one that the table knows."""
    ledger = fleet.ledger
    keys = ledger.incidents_of_event.get(event.cause or "", ())
    named = next((key for key in keys if key in ledger.open_incidents), None)
    if named is not None:
        return ledger.incidents[named]
    of_gpu = _of_its_gpu(fleet, event)
    if of_gpu is not None:
        return of_gpu
    causes = EXPLAINED_BY.get(event.code)
    if causes is None or event.gpu is not None:
        return None
    for key in ledger.open_incidents:
        codes = [e for e in _events(fleet, ledger.incidents[key]) if e.node == event.node and e.code in causes]
        if codes:
            return ledger.incidents[key]
    return None


def _of_its_gpu(fleet: Fleet, event: Event) -> IncidentLine | None:
    """Of an event of a replica: the open incident that takes one of its GPUs out of service, on whatever node."""
    replica = fleet.roster.find(subject_of(event).replica)
    for gpu in replica.gpus if replica is not None else ():
        for key in fleet.ledger.incidents_of.get(Subject(gpu=gpu), ()):
            if wants_hold(fleet, fleet.ledger.incidents[key]):
                return fleet.ledger.incidents[key]
    return None


def _beside(fleet: Fleet, event: Event, now: float) -> IncidentLine | None:
    """The open incident of the same GPU that came just before, or whose repair is under way."""
    ledger = fleet.ledger
    for key in ledger.incidents_of.get(subject_of(event), ()):
        incident = ledger.incidents[key]
        if incident.subject.replica is not None:
            return incident  # one story a replica, until it serves again
        held = any(hold.incident == key for hold in ledger.standing(incident.subject, OWNER))
        if held or now - ledger.evidence_at(incident) <= CORRELATION_S:
            return incident
    return None


def _open(event: Event, key: str, now: float) -> IncidentLine:
    return IncidentLine(
        at=now,
        subject=subject_of(event),
        device=event.device,
        id=key,
        state="open",
        root=event.id,
        code=event.code,
        severity=event.severity,
        recovery=event.recovery,
        events=(event.id,),
        suspects=suspects.named_by(event),
    )


def _grow(fleet: Fleet, known: IncidentLine, event: Event, now: float) -> Iterator[IncidentLine]:
    grown = replace(
        known,
        severity=_harsher_severity(known.severity, event.severity),
        recovery=_harsher_recovery(known.recovery, event.recovery),
        events=known.events if event.id in known.events else (*known.events, event.id),
        suspects=suspects.joined(known.suspects, suspects.named_by(event)),
    )
    root = _root(fleet, known, event)
    grown = replace(grown, root=root.id, code=root.code)
    if grown != known:
        yield replace(grown, at=now, state="updated")


def _root(fleet: Fleet, incident: IncidentLine, event: Event) -> Event:
    """The event that explains the others: the cause of the root so far, else the harsher of two unrelated ones."""
    root = fleet.ledger.events.get(incident.root)
    if root is None or root.id == event.id:
        return event
    if root.cause == event.id or event.code in EXPLAINED_BY.get(root.code, ()):
        return event
    related = event.cause is not None or root.code in EXPLAINED_BY.get(event.code, ())
    harsher = (event.severity.rank, event.recovery.rank) > (root.severity.rank, root.recovery.rank)
    return event if harsher and not related and event.gpu == root.gpu else root


def _events(fleet: Fleet, incident: IncidentLine) -> list[Event]:
    return [fleet.ledger.events[key] for key in incident.events if key in fleet.ledger.events]


def conditions_of(fleet: Fleet, incident: IncidentLine) -> list[ConditionLine]:
    """The conditions that its events opened, ended ones too."""
    keys = [key for event in incident.events for key in fleet.ledger.conditions_of_event.get(event, ())]
    return [fleet.ledger.conditions[key] for key in dict.fromkeys(keys)]


def is_over(fleet: Fleet, incident: IncidentLine) -> bool:
    """Whether all that was wrong has ended."""
    return all(condition.state == "cleared" for condition in conditions_of(fleet, incident))


def is_momentary_one(fleet: Fleet, incident: IncidentLine) -> bool:
    """Whether nothing of it ever stood."""
    return not conditions_of(fleet, incident)


def has_settled(_fleet: Fleet, incident: IncidentLine, now: float) -> bool:
    """Whether nothing more has come to it for as long as faults of one GPU belong together."""
    return now - incident.at >= CORRELATION_S


def close(incident: IncidentLine, because: str, now: float) -> IncidentLine:
    """The line that ends an incident."""
    return replace(incident, at=now, state="closed", closed_because=because)


def _harsher_severity(one: Severity, other: Severity) -> Severity:
    return max(one, other, key=lambda severity: severity.rank)


def _harsher_recovery(one: Recovery, other: Recovery) -> Recovery:
    return max(one, other, key=lambda recovery: recovery.rank)
