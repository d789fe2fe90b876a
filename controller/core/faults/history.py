"""The history of a GPU: how often the same fault came back after a repair, and whether a boot has left it missing.

A repair that ends a fault for good is the rule; one that does not is a board for the vendor. What a person calls
healthy begins anew: its faults of before are kept and no longer counted.
"""

from itertools import pairwise

from controller.core.fleet.fleet import LOST_CODES, Fleet
from controller.core.fleet.kinds import RUNGS
from controller.core.fleet.ladder import HARSHER_AGAIN, LADDER
from controller.core.fleet.settings import RECUR_MOST, RECUR_S
from controller.core.policy.policy import demand
from vocab.lines import ConditionLine, IncidentLine, Subject
from vocab.states import ActionKind


def first_rung(fleet: Fleet, incident: IncidentLine, now: float) -> ActionKind | None:
    """The rung that the fault asks for: by its advice, and by what repairs have not brought before."""
    rung = LADDER[demand(fleet, incident)]
    if rung is None:
        return None
    resets, boots = comebacks(fleet, incident, now)
    if boots >= RECUR_MOST:
        return ActionKind.QUARANTINE
    if boots or resets >= RECUR_MOST or (resets and incident.code in HARSHER_AGAIN):
        rung = harsher(rung, ActionKind.REBOOT_NODE)
    if is_gone_since_boot(fleet, incident):
        rung = harsher(rung, ActionKind.POWER_CYCLE)
    return rung


def harsher(one: ActionKind, other: ActionKind) -> ActionKind:
    """The harsher of two rungs."""
    return max(one, other, key=RUNGS.index)


def comebacks(fleet: Fleet, incident: IncidentLine, now: float) -> tuple[int, int]:
    """How often this fault of this GPU came back within four weeks: after a reset, and after a boot."""
    ledger, subject = fleet.ledger, incident.subject
    since = max(now - RECUR_S, ledger.healthy_at.get(subject, float("-inf")))
    known = [ledger.conditions[key] for key in ledger.repaired.get((subject, incident.code), ())]
    ended = [condition for condition in known if condition.at > since]
    standing = ledger.open_conditions.get((subject, incident.code, incident.device))
    chain = ended + ([ledger.conditions[standing]] if standing is not None else [])
    boots = [_boot_of(fleet, condition) for condition in chain]
    again = [one != other for one, other in pairwise(boots)]
    return again.count(False), again.count(True)


def _boot_of(fleet: Fleet, condition: ConditionLine) -> str | None:
    events = [fleet.ledger.events[key] for key in condition.events if key in fleet.ledger.events]
    return events[-1].boot_id if events else None


def is_gone_since_boot(fleet: Fleet, incident: IncidentLine) -> bool:
    """Whether its GPU is missing though its node has booted since the fault began: another boot will not bring it."""
    events = fleet.ledger.events
    gone = [c for c in fleet.conditions_on(Subject(gpu=incident.subject.gpu)) if c.code in LOST_CODES]
    boots = {events[key].boot_id for condition in gone for key in condition.events if key in events}
    root = events.get(incident.root)
    return root is not None and root.boot_id is not None and bool(boots - {root.boot_id, None})
