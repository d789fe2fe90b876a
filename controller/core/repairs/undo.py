"""Undo: what automation did since a moment is taken back, as far as it can be, and what cannot be is named.

The policy's holds of that time are lifted, what waits for room is dropped, and what has not ended is called off:
drains, validations, and repairs that their node has not begun. What was seen until now counts as *taken back*: it holds
nothing and fails no GPU again; what is seen anew does. A repair that has begun ends by itself, and its GPU is proven
before it serves: its hold stays until then.
"""

from collections.abc import Iterator

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.kinds import STARTED
from controller.core.fleet.stimuli import Asked
from controller.core.policy.asked import refuse, words
from controller.core.policy.place import code_of
from controller.core.repairs import repair, validation
from controller.core.repairs.holds import is_fence, lift, standing_for
from controller.core.replicas.actions import move
from vocab.catalogue import codes
from vocab.lines import ActionLine, AnyLine, HoldLine, IncidentLine, NoteLine
from vocab.states import REPAIRS, TERMINAL_ACTIONS, ActionKind, ActionState

UNDONE, NOT_UNDONE = "undone", "not_undone"
CALLED_OFF = (ActionKind.DRAIN, ActionKind.VALIDATE, *REPAIRS)
HAPPENED = frozenset({ActionState.DONE, ActionState.TIMED_OUT, ActionState.FAILED})
GOING = (ActionKind.DRAIN, ActionKind.STOP_REPLICA)
FENCE_ENDS = "its agent ends it within two minutes unless the fault is seen again"


def undo(fleet: Fleet, asked: Asked, now: float) -> Iterator[AnyLine]:
    """Take back what was done within the last ``since_s`` seconds (for one ``rule``)."""
    if asked.since_s is None or asked.since_s <= 0:
        yield refuse(asked, "say how far back: a time before now", now)
        return
    if asked.rule is not None and asked.rule not in codes.ROWS and asked.rule not in fleet.ledger.holds_of_rule:
        acted = ", ".join(sorted(fleet.ledger.holds_of_rule)) or "none so far"
        yield refuse(
            asked,
            f"there is no rule {asked.rule!r}; rules that have held something: {acted}{codes.nearest(asked.rule)}",
            now,
        )
        return
    since = now - asked.since_s
    stories = list(_stories(fleet, since, asked.rule))
    for incident in stories:
        yield from _take_back(fleet, incident, since, asked, now)
    taken_back = {incident.id for incident in stories}
    for action in fleet.ledger.live(*CALLED_OFF):
        if action.incident not in taken_back and _is_meant(fleet, action, since, asked.rule):
            yield from _call_off(action, asked, now)
    for key in fleet.ledger.fences:
        hold = fleet.ledger.holds[key]
        if hold.at >= since and asked.rule is None:
            yield NoteLine(
                at=now, subject=hold.subject, code=NOT_UNDONE, text=f"the fence by {hold.owner}: {FENCE_ENDS}"
            )


def _stories(fleet: Fleet, since: float, rule: str | None) -> Iterator[IncidentLine]:
    """The open incidents for which the policy has held something since, or would have."""
    ledger = fleet.ledger
    holds = [*(hold for hold in ledger.holds.values() if not is_fence(hold)), *ledger.would_holds.values()]
    keys = dict.fromkeys(hold.incident for hold in holds if hold.incident is not None and hold.at >= since)
    for key in keys:
        incident = ledger.incidents[key]
        if key in ledger.open_incidents and rule in {None, incident.code, code_of(fleet, incident)}:
            yield incident


def _take_back(fleet: Fleet, incident: IncidentLine, since: float, asked: Asked, now: float) -> Iterator[AnyLine]:
    hold, against = standing_for(fleet, incident), _unproven(fleet, incident)
    yield from _what_happened(fleet, incident, since, now)
    if against is not None:
        subject = hold.subject if hold is not None else incident.subject
        text = f"{against}; its hold stays until it is proven"
        yield NoteLine(at=now, subject=subject, code=NOT_UNDONE, text=text, incident=incident.id)
        return
    for action in fleet.ledger.of_incident(incident.id, *CALLED_OFF):
        yield from _call_off(action, asked, now)
    said = words(asked, "undone")
    yield from (lift(each, said, now) for each in _holds_of(fleet, incident))
    text = f"{incident.id}: {said}"
    yield NoteLine(at=now, subject=incident.subject, code=UNDONE, text=text, incident=incident.id)


def _holds_of(fleet: Fleet, incident: IncidentLine) -> list[HoldLine]:
    """All that the policy holds for it: its place, and GPUs that it suspects."""
    return [hold for hold in fleet.ledger.holds.values() if hold.incident == incident.id and not is_fence(hold)]


def _unproven(fleet: Fleet, incident: IncidentLine) -> str | None:
    """The repair for it that cannot be taken back: one that its node has begun, or that is not proven yet."""
    for action in _repairs_of(fleet, incident):
        if action.state is ActionState.RUNNING:
            return f"{action.of} has begun"
    repaired = validation.repaired_at(fleet, incident)
    if repaired is not None and validation.passed_at(fleet, incident, repaired) is None:
        return "it was repaired and is not validated"
    return None


def _repairs_of(fleet: Fleet, incident: IncidentLine) -> list[ActionLine]:
    tries = [action for action in repair.tries_of(fleet, incident) if action.of in REPAIRS]
    covers = [fleet.ledger.actions[key] for each in tries if (key := each.covered_by) in fleet.ledger.actions]
    return [*tries, *covers]


def _what_happened(fleet: Fleet, incident: IncidentLine, since: float, now: float) -> Iterator[NoteLine]:
    """What was done for it since and stays done."""
    for action in fleet.ledger.of_incident(incident.id, *GOING, *REPAIRS):
        ended = action.state in HAPPENED and action.at >= since
        if ended or (action.of is ActionKind.STOP_REPLICA and action.state in STARTED):
            text = f"{action.of} {action.state}: {action.why}"
            yield NoteLine(at=now, subject=action.subject, code=NOT_UNDONE, text=text, incident=incident.id)


def _is_meant(fleet: Fleet, action: ActionLine, since: float, rule: str | None) -> bool:
    """Whether automation has ordered it since, for this rule: a person's own order is not taken back."""
    code = action.rule.removeprefix("catalogue/")
    ordered = fleet.ledger.ordered_at.get(action.id, action.at)
    return code != action.rule and ordered >= since and rule in {None, code}


def _call_off(action: ActionLine, asked: Asked, now: float) -> Iterator[AnyLine]:
    if action.state in TERMINAL_ACTIONS:
        return
    if action.of in REPAIRS and action.state is ActionState.RUNNING:
        text = f"{action.of} has begun: it ends by itself"
        yield NoteLine(at=now, subject=action.subject, code=NOT_UNDONE, text=text, incident=action.incident)
    else:
        yield move(action, ActionState.CANCELLED, words(asked, "undone"), now)
