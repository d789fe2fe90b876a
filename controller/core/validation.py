"""After a repair: the GPU is proven by a validation and then by time, before it takes work again.

Where we repaired nothing (the signal returned, a person did it) there is nothing of ours to prove.
"""

from collections.abc import Iterator

from controller.core import repair
from controller.core.actions import draw, placed_anew
from controller.core.fleet import Fleet
from controller.core.kinds import REPAIRS, USED_UP
from controller.core.names import action_id
from controller.core.policy import Leave, may_act, rule_of
from controller.core.settings import PROBATION_S, VALIDATE_TTL_S
from vocab.lines import AnyLine, IncidentLine
from vocab.states import ActionKind, ActionState


def repaired_at(fleet: Fleet, incident: IncidentLine) -> float | None:
    """When our last repair ended, well or unseen, its own or one that covered it; None if there was none."""
    ended = {ActionState.DONE, ActionState.TIMED_OUT}
    tries = [action for action in repair.tries_of(fleet, incident) if action.of in REPAIRS]
    covers = [fleet.ledger.actions.get(action.covered_by or "") for action in tries]
    done = [action.at for action in (*tries, *covers) if action is not None and action.state in ended]
    return max(done, default=None)


def passed_at(fleet: Fleet, incident: IncidentLine) -> float | None:
    """When a validation that was ordered after the last repair has passed."""
    since = repaired_at(fleet, incident)
    passed = [a for a in fleet.ledger.of_incident(incident.id, ActionKind.VALIDATE) if a.state is ActionState.DONE]
    later = [a.at for a in passed if since is not None and fleet.ledger.ordered_at.get(a.id, 0.0) >= since]
    return max(later, default=None)


def is_passed(fleet: Fleet, incident: IncidentLine, _now: float) -> bool:
    """Whether nothing is left to validate."""
    return repaired_at(fleet, incident) is None or passed_at(fleet, incident) is not None


def is_kept(fleet: Fleet, incident: IncidentLine, now: float) -> bool:
    """Whether the probation is over: a new condition would have brought the incident back onto the sick way."""
    passed = passed_at(fleet, incident)
    return passed is None or now >= passed + PROBATION_S


def order(fleet: Fleet, incident: IncidentLine, now: float) -> Iterator[AnyLine]:
    """Order the validation. A failed one is quarantine; what could not be proven waits for a person."""
    gpu = fleet.gpus.get(incident.subject.gpu or "")
    if gpu is None:
        return
    nth = sum(action.state in USED_UP for action in repair.tries_of(fleet, incident))
    key = action_id(ActionKind.VALIDATE, incident.id, nth)
    known = fleet.ledger.actions.get(key)
    if known is not None and known.state is ActionState.FAILED:
        yield from repair.quarantine(fleet, incident, f"its validation failed: {known.why}", now)
    elif known is not None and known.state in {ActionState.REFUSED, ActionState.TIMED_OUT}:
        yield from repair.ask_person(fleet, incident, f"it could not be validated: {known.why}", now)
    else:
        yield from _order(fleet, incident, gpu.node, key, now)


def _order(fleet: Fleet, incident: IncidentLine, node: str, key: str, now: float) -> Iterator[AnyLine]:
    verdict = may_act(fleet, node, ActionKind.VALIDATE, now)
    if verdict.leave is Leave.LATER:
        return
    go = verdict.leave is Leave.GO
    drawn = draw(
        fleet,
        now,
        ActionKind.VALIDATE,
        key,
        incident.subject,
        state=ActionState.ORDERED if go else ActionState.WOULD,
        incident=incident.id,
        rule=rule_of(incident),
        ttl_s=VALIDATE_TTL_S,
        why="its repair has ended" if go else verdict.why,
    )
    line = placed_anew(fleet, drawn)
    if line is not None:
        yield line
