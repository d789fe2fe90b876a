"""Suspects: GPUs that an event of a replica names as the likely cause, without a fault of their own.

One suspicion restarts the replica and holds nothing. The same GPU suspected again within a day, in another
incident and with at least medium confidence, is held until a person has looked at it.
"""

from collections.abc import Iterator

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.names import hold_id
from controller.core.policy import budget
from controller.core.policy.policy import OWNER, Leave, may
from vocab.events import Event
from vocab.lines import HoldLine, IncidentLine, Subject, Suspect
from vocab.states import ClearsOn, Level

AGAIN_S = 86_400.0  # twice in a day: chance is a million to one against it on a fleet of healthy GPUs
ORDER = ("low", "medium", "high")


def named_by(event: Event) -> tuple[Suspect, ...]:
    """The suspects that an event names."""
    found = event.fields.get("suspects") or ()
    return tuple(
        Suspect(gpu=str(one["gpu"]), confidence=str(one.get("confidence", "low")))
        for one in found
        if isinstance(one, dict) and one.get("gpu")
    )


def joined(known: tuple[Suspect, ...], more: tuple[Suspect, ...]) -> tuple[Suspect, ...]:
    """Both, each GPU once with the higher confidence."""
    best = {suspect.gpu: suspect for suspect in known}
    for suspect in more:
        before = best.get(suspect.gpu)
        if before is None or _rank(suspect) > _rank(before):
            best[suspect.gpu] = suspect
    return tuple(best.values())


def _rank(suspect: Suspect) -> int:
    return ORDER.index(suspect.confidence) if suspect.confidence in ORDER else 0


def hold_repeated(fleet: Fleet, now: float) -> Iterator[HoldLine]:
    """Hold what is suspected for the second time within a day."""
    for key in fleet.ledger.docket.suspecting():
        incident = fleet.ledger.incidents[key]
        for suspect in incident.suspects:
            if _rank(suspect) >= ORDER.index("medium") and _before(fleet, incident, suspect, now):
                yield from _hold(fleet, incident, suspect.gpu, now)


def _before(fleet: Fleet, incident: IncidentLine, suspect: Suspect, now: float) -> bool:
    """Whether another incident of the last day suspects the same GPU."""
    told = fleet.ledger.suspected.get(suspect.gpu, {})
    return any(key != incident.id and now - at <= AGAIN_S for key, at in told.items())


def _hold(fleet: Fleet, incident: IncidentLine, gpu: str, now: float) -> Iterator[HoldLine]:
    known, key = fleet.gpus.get(gpu), hold_id(OWNER, "suspect", gpu, incident.id)
    ledger = fleet.ledger
    if known is None or key in ledger.holds or key in ledger.lifted or ledger.standing(Subject(gpu=gpu), OWNER):
        return
    verdict = may(fleet, known.node, Level.CORDON, now, incident)
    if verdict.leave is Leave.LATER:
        return
    broken = budget.cordons(fleet, Subject(gpu=gpu), known.node, now)
    go = verdict.leave is Leave.GO and broken is None
    if not go and key in ledger.would_holds:
        return
    reason = f"{incident.code}: suspected for the second time within a day"
    why = verdict.why if broken is None else f"{broken.used:g} of {broken.limit:g} {broken.of}"
    yield HoldLine(
        at=now,
        subject=Subject(gpu=gpu),
        id=key,
        op="placed" if go else "would_place",
        owner=OWNER,
        reason=reason if go else f"{reason}; not now: {why}",
        incident=incident.id,
        clears_on=ClearsOn.PERSON,
        rule=incident.code,
    )
