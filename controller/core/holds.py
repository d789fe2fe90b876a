"""Holds: who keeps a GPU out of work, and why. Cordoned is: at least one hold.

Owners: ``policy`` (a fault), ``agent:NODE`` (a fence; told to us, never by us), ``operator`` and whom a
person names. The policy's hold confirms the agent's fence and replaces it: it is placed before that one is
lifted, so the GPU is never free between. Nobody's hold is lifted for another's reason.
"""

from collections.abc import Iterator

from controller.core import budget
from controller.core.fleet import Fleet
from controller.core.names import hold_id
from controller.core.policy import OWNER, Leave, has_fresh_evidence, may, rule_of, wants_hold
from vocab.lines import HoldLine, IncidentLine, NoteLine, Subject
from vocab.messages import FenceItem
from vocab.states import ClearsOn, Level

RETURNED = "returned_unexplained"
TOO_MUCH = "too_much_sick"


def for_faults(fleet: Fleet, now: float) -> Iterator[HoldLine | NoteLine]:
    """The policy's hold on every GPU whose open incident asks for one: placed, or said what would be."""
    for incident in fleet.restless():
        if wants_hold(fleet, incident) and standing_for(fleet, incident) is None:
            yield from _for_fault(fleet, incident, now)


def standing_for(fleet: Fleet, incident: IncidentLine) -> HoldLine | None:
    """The policy's hold for an incident, if it stands."""
    found = fleet.ledger.standing(incident.subject, OWNER)
    return next((hold for hold in found if hold.incident == incident.id), None)


def _for_fault(fleet: Fleet, incident: IncidentLine, now: float) -> Iterator[HoldLine | NoteLine]:
    gpu = fleet.gpus.get(incident.subject.gpu or "")
    key = _key(fleet, incident)
    if gpu is None or key is None:
        return
    verdict = may(fleet, gpu.node, Level.CORDON, now)
    if verdict.leave is Leave.LATER:
        return
    would = key in fleet.ledger.would_holds
    broken = budget.cordons(fleet, now)
    if verdict.leave is Leave.WOULD or broken is not None:
        if not would:
            why = verdict.why if broken is None else f"{broken.used:g} of {broken.limit:g} {broken.of}"
            yield _hold(incident, key, "would_place", f"{_reason(incident)}; not now: {why}", now)
            if verdict.leave is Leave.GO:
                yield NoteLine(
                    at=now, subject=Subject(), code=TOO_MUCH, text=f"over budget: {why}; look before you act"
                )
    elif not would or has_fresh_evidence(fleet, incident, now):
        yield _hold(incident, key, "placed", _reason(incident), now)


def _key(fleet: Fleet, incident: IncidentLine) -> str | None:
    """The id of the hold that is due; None if it was lifted and no event has come since."""
    nth = 0
    while (lifted := fleet.ledger.lifted.get(key := hold_id(OWNER, incident.id, nth))) is not None:
        fresh = [e for e in incident.events if fleet.ledger.first_taken_at.get(e, 0.0) > lifted.at]
        if not fresh:
            return None
        nth += 1
    return key


def _reason(incident: IncidentLine) -> str:
    return f"{incident.code}: {incident.severity}, {incident.recovery} is advised ({rule_of(incident)})"


def _hold(incident: IncidentLine, key: str, op: str, reason: str, now: float) -> HoldLine:
    return HoldLine(
        at=now,
        subject=incident.subject,
        id=key,
        op=op,
        owner=OWNER,
        reason=reason,
        incident=incident.id,
        clears_on=ClearsOn.REBOOT if incident.recovery == "reboot_node" else ClearsOn.RESET,
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
    )


def replaced_fences(fleet: Fleet, now: float) -> Iterator[HoldLine]:
    """Fences that the policy's own hold has confirmed."""
    for hold in [fleet.ledger.holds[key] for key in fleet.ledger.fences]:
        if fleet.ledger.standing(hold.subject, OWNER):
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


def for_return(fleet: Fleet, node: str, now: float) -> HoldLine:
    """A node that was lost comes back: nobody knows what happened to it, so it takes no work until a person looks."""
    nth = sum(1 for hold in fleet.ledger.lifted.values() if hold.subject.node == node and RETURNED in hold.reason)
    return HoldLine(
        at=now,
        subject=Subject(node=node),
        id=hold_id(OWNER, RETURNED, node, nth),
        op="placed",
        owner=OWNER,
        reason=f"{RETURNED}: the node was lost and reports again",
        clears_on=ClearsOn.PERSON,
    )
