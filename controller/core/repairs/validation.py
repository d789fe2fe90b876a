"""After a repair: its GPUs are proven by a validation and then by time, before they take work again.

Where we repaired nothing (the signal returned, a person did it) there is nothing of ours to prove.
"""

from collections.abc import Iterator

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.kinds import USED_UP
from controller.core.fleet.names import action_id
from controller.core.fleet.settings import PROBATION_S, VALIDATE_TTL_S
from controller.core.policy.place import gpus_of, node_of, place_of
from controller.core.policy.policy import Leave, may_act, rule_of
from controller.core.repairs import repair
from controller.core.replicas.actions import draw, placed_anew
from vocab.lines import ActionLine, AnyLine, IncidentLine, Subject
from vocab.states import REPAIRS, ActionKind, ActionState

UNPROVEN = frozenset({ActionState.REFUSED, ActionState.TIMED_OUT})


def repaired_at(fleet: Fleet, incident: IncidentLine) -> float | None:
    """When our last repair ended, well or unseen, its own or one that covered it; None if there was none."""
    ended = {ActionState.DONE, ActionState.TIMED_OUT}
    tries = [action for action in repair.tries_of(fleet, incident) if action.of in REPAIRS]
    covers = [fleet.ledger.actions.get(action.covered_by or "") for action in tries]
    done = [action.at for action in (*tries, *covers) if action is not None and action.state in ended]
    return max(done, default=None)


def passed_at(fleet: Fleet, incident: IncidentLine, since: float) -> float | None:
    """When the last of its GPUs passed a validation that was ordered after ``since``; None while one has not."""
    passed = dict.fromkeys(subjects(fleet, incident))
    times: dict[str, float] = {}
    for action in fleet.ledger.of_incident(incident.id, ActionKind.VALIDATE):
        ordered = fleet.ledger.ordered_at.get(action.id, 0.0)
        if action.state is ActionState.DONE and ordered >= since and action.subject.gpu in passed:
            times[action.subject.gpu or ""] = action.at
    return max(times.values(), default=None) if len(times) == len(passed) else None


def subjects(fleet: Fleet, incident: IncidentLine) -> list[str]:
    """The GPUs that must be proven."""
    place = place_of(fleet, incident) or incident.subject
    return [gpu for gpu in gpus_of(fleet, place) if gpu in fleet.gpus and fleet.gpus[gpu].listed]


def is_passed(fleet: Fleet, incident: IncidentLine, _now: float) -> bool:
    """Whether nothing is left to validate."""
    since = repaired_at(fleet, incident)
    return since is None or passed_at(fleet, incident, since) is not None


def is_kept(fleet: Fleet, incident: IncidentLine, now: float) -> bool:
    """Whether the probation is over: a new condition would have brought the incident back onto the sick way."""
    since = repaired_at(fleet, incident)
    passed = passed_at(fleet, incident, since) if since is not None else None
    return passed is None or now >= passed + PROBATION_S


def order(fleet: Fleet, incident: IncidentLine, now: float) -> Iterator[AnyLine]:
    """Order the validations. A failed one is quarantine; what could not be proven waits for a person."""
    nth = sum(action.state in USED_UP for action in repair.tries_of(fleet, incident))
    gpus = subjects(fleet, incident)
    for gpu in gpus:
        key = action_id(ActionKind.VALIDATE, incident.id, *([nth] if len(gpus) == 1 else [nth, gpu]))
        known = fleet.ledger.actions.get(key)
        if known is not None and known.state is ActionState.FAILED:
            yield from repair.quarantine(fleet, incident, f"its validation failed: {known.why}", now)
        elif known is not None and known.state in UNPROVEN:
            yield from repair.ask_person(fleet, incident, f"it could not be validated: {known.why}", now)
        else:
            yield from _order(fleet, incident, gpu, key, "its repair has ended", now)


def _order(fleet: Fleet, incident: IncidentLine, gpu: str, key: str, why: str, now: float) -> Iterator[ActionLine]:
    node = node_of(fleet, incident) or ""
    verdict = may_act(fleet, node, ActionKind.VALIDATE, now)  # whatever has become of the rule: it leads to the release
    if verdict.leave is Leave.LATER:
        return
    go = verdict.leave is Leave.GO
    drawn = draw(
        fleet,
        now,
        ActionKind.VALIDATE,
        key,
        Subject(gpu=gpu),
        state=ActionState.ORDERED if go else ActionState.WOULD,
        incident=incident.id,
        rule=rule_of(fleet, incident),
        ttl_s=VALIDATE_TTL_S,
        why=why if go else verdict.why,
    )
    line = placed_anew(fleet, drawn)
    if line is not None:
        yield line


# -- a node that was lost and is back ---------------------------------------------------------------------


def is_proven(fleet: Fleet, incident: IncidentLine, _now: float) -> bool:
    """Whether every GPU of a node that came back has passed."""
    return passed_at(fleet, incident, incident.at) is not None


def order_on_return(fleet: Fleet, incident: IncidentLine, now: float) -> Iterator[AnyLine]:
    """Validate every GPU of a node that came back."""
    for gpu in subjects(fleet, incident):
        key = action_id(ActionKind.VALIDATE, incident.id, gpu)
        known = fleet.ledger.actions.get(key)
        if known is not None and known.state in UNPROVEN | {ActionState.FAILED}:
            yield from repair.ask_person(fleet, incident, f"{gpu} could not be validated: {known.why}", now)
        else:
            yield from _order(fleet, incident, gpu, key, "its node was lost and is back", now)
