"""Holds: who keeps a GPU or a node out of work, and why. Cordoned is: at least one hold.

Owners: ``policy`` (a fault), ``agent:NODE`` (a fence; told to us, never by us), ``operator`` and whom a
person names. The policy's hold confirms the agent's fence and replaces it: it is placed before that one is
lifted, so the GPU is never free between. Nobody's hold is lifted for another's reason.
"""

from collections.abc import Iterator

from controller.core.faults.incidents import is_over
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.names import hold_id
from controller.core.fleet.settings import EVIDENCE_S, QUEUED_S
from controller.core.policy import budget
from controller.core.policy.place import code_of, node_of, place_of
from controller.core.policy.policy import OWNER, Leave, has_fresh_evidence, may, rule_of
from vocab.events import Recovery
from vocab.lines import Budget, HoldLine, IncidentLine, Subject
from vocab.messages import FenceItem
from vocab.states import ClearsOn, Level

CLEARS_ON = {
    Recovery.REBOOT_NODE: ClearsOn.REBOOT,
    Recovery.POWER_CYCLE: ClearsOn.REBOOT,
    Recovery.CONTACT_SUPPORT: ClearsOn.PERSON,
}


def for_faults(fleet: Fleet, now: float) -> Iterator[HoldLine]:
    """The policy's hold on every place whose open incident asks for one: placed, or said what would be."""
    for incident in fleet.restless():
        place = place_of(fleet, incident)
        if place is not None and not is_over(fleet, incident) and standing_for(fleet, incident) is None:
            yield from _for_fault(fleet, incident, place, now)


def standing_for(fleet: Fleet, incident: IncidentLine) -> HoldLine | None:
    """The policy's hold for an incident, if it stands: on its GPU or on its node."""
    subjects = dict.fromkeys([incident.subject, Subject(node=node_of(fleet, incident))])
    found = (hold for subject in subjects for hold in fleet.ledger.standing(subject, OWNER))
    return next((hold for hold in found if hold.incident == incident.id), None)


def _for_fault(fleet: Fleet, incident: IncidentLine, place: Subject, now: float) -> Iterator[HoldLine]:
    node, key = node_of(fleet, incident), key_of(fleet, incident)
    if node is None or key is None or not _exists(fleet, place):
        return
    verdict = may(fleet, node, Level.CORDON, now, incident)
    if verdict.leave is Leave.LATER:
        return
    would = fleet.ledger.would_holds.get(key)
    broken = budget.cordons(fleet, place, node, now)
    if verdict.leave is Leave.WOULD or broken is not None:
        if would is None:
            why = f"{broken.used:g} of {broken.limit:g} {broken.of}" if broken is not None else verdict.why
            reason = f"{reason_of(fleet, incident)}; not now: {why}"
            yield hold_for(fleet, incident, place, key, "would_place", reason, now, None if verdict.why else broken)
    elif would is None or has_fresh_evidence(fleet, incident, now, QUEUED_S if would.budget else EVIDENCE_S):
        yield hold_for(fleet, incident, place, key, "placed", reason_of(fleet, incident), now)


def _exists(fleet: Fleet, place: Subject) -> bool:
    return place.gpu in fleet.gpus or place.node in fleet.nodes


def key_of(fleet: Fleet, incident: IncidentLine) -> str | None:
    """The id of the hold that is due; None if it was lifted or taken back, and no event has come since."""
    if fleet.ledger.is_taken_back(incident.events):
        return None
    nth = 0
    while (lifted := fleet.ledger.lifted.get(key := hold_id(OWNER, incident.id, nth))) is not None:
        fresh = [e for e in incident.events if fleet.ledger.first_taken_at.get(e, 0.0) > lifted.at]
        if not fresh:
            return None
        nth += 1
    return key


def reason_of(fleet: Fleet, incident: IncidentLine) -> str:
    """Why the policy holds something for an incident."""
    return f"{incident.code}: {incident.severity}, {incident.recovery} is advised ({rule_of(fleet, incident)})"


def hold_for(
    fleet: Fleet,
    incident: IncidentLine,
    place: Subject,
    key: str,
    op: str,
    reason: str,
    now: float,
    broken: Budget | None = None,
) -> HoldLine:
    """The policy's hold for an incident; it ends with what the incident's recovery brings about."""
    return HoldLine(
        at=now,
        subject=place,
        id=key,
        op=op,
        owner=OWNER,
        reason=reason,
        incident=incident.id,
        clears_on=CLEARS_ON.get(incident.recovery, ClearsOn.RESET),
        budget=broken,
        rule=code_of(fleet, incident),
    )


def lift(hold: HoldLine, why: str, now: float) -> HoldLine:
    """The line that ends a hold."""
    return HoldLine(
        at=now,
        subject=hold.subject,
        id=hold.id,
        op="lifted",
        owner=hold.owner,
        reason=why,
        incident=hold.incident,
        clears_on=hold.clears_on,
        rule=hold.rule,
    )


def replaced_fences(fleet: Fleet, now: float) -> Iterator[HoldLine]:
    """Fences that the policy's own hold, on the GPU or on its node, has confirmed."""
    for hold in [fleet.ledger.holds[key] for key in fleet.ledger.fences]:
        if any(other.owner == OWNER for other in fleet.holds_on(hold.subject.gpu or "")):
            yield lift(hold, "confirmed and replaced by the policy's hold", now)


def is_fence(hold: HoldLine) -> bool:
    """Whether an agent placed it."""
    return hold.owner.startswith("agent:")


def of_fence(fleet: Fleet, item: FenceItem, now: float) -> Iterator[HoldLine]:
    """What an agent says of its own fence, as a hold of its own."""
    owner, subject = f"agent:{item.node}", Subject(gpu=item.gpu)
    key = hold_id(owner, item.gpu, item.at)
    if item.op in {"placed", "refused"}:
        ledger = fleet.ledger
        if not any(key in known for known in (ledger.holds, ledger.lifted, ledger.refused_holds)):
            yield HoldLine(
                at=now, subject=subject, id=key, op=item.op, owner=owner, reason=item.why, clears_on=ClearsOn.SIGNAL
            )
        return
    for hold in fleet.ledger.standing(subject, owner):
        yield lift(hold, f"the fence {item.op}: {item.why}", now)
