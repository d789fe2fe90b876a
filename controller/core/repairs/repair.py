"""The repair: one rung of the ladder after another, each only for an empty place and within the budget.

A repair that takes more than the fault's own GPU waits until all that it takes is empty, or for a person. Two faults
that one repair ends get one: the second is *covered*. A refusal is not repeated; the incident then waits for a person.
"""

from collections.abc import Iterator

import msgspec

from controller.core.faults.history import first_rung, harsher
from controller.core.faults.incidents import conditions_of, is_over
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.kinds import RUNGS, STARTED, USED_UP, WIDE
from controller.core.fleet.ladder import NEXT_RUNG
from controller.core.fleet.names import action_id
from controller.core.fleet.settings import EVIDENCE_S, PROVEN_S, REBOOT_TTL_S, RESET_TTL_S
from controller.core.policy import budget
from controller.core.policy.place import gpus_of, node_of, place_of
from controller.core.policy.policy import Leave, has_fresh_evidence, is_able, may_act, rule_of
from controller.core.repairs.disruption import covering, disrupted, guests, in_use, is_foreign, taken
from controller.core.replicas import owners
from controller.core.replicas.actions import draw, move, placed_anew
from controller.core.replicas.retire import for_incident, replicas_at, would_drain
from vocab.lines import ActionLine, AnyLine, Budget, IncidentLine, NoteLine, Subject
from vocab.states import ActionKind, ActionState, NodeState

NEEDS_PERSON = "needs_person"
TTL_S = {
    ActionKind.RESET_GPU: RESET_TTL_S,
    ActionKind.REBOOT_NODE: REBOOT_TTL_S,
    ActionKind.POWER_CYCLE: REBOOT_TTL_S,
}
_WHY_QUARANTINE = "no repair of ours is left: the vendor, or a person, must look"


class Decision(msgspec.Struct, frozen=True):
    """The state that a repair is in, and why."""

    state: ActionState
    why: str
    budget: Budget | None = None
    covered_by: str | None = None


def tries_of(fleet: Fleet, incident: IncidentLine) -> list[ActionLine]:
    """The repairs for an incident so far, oldest first."""
    return fleet.ledger.of_incident(incident.id, *RUNGS)


def is_under_way(fleet: Fleet, incident: IncidentLine) -> bool:
    """Whether a repair of ours was ordered and has not ended."""
    return any(action.state in STARTED for action in tries_of(fleet, incident))


def climb(fleet: Fleet, incident: IncidentLine, now: float) -> Iterator[AnyLine]:
    """The next thing to do for an incident whose place is held and empty."""
    rung = first_rung(fleet, incident, now)
    tries = tries_of(fleet, incident)
    last = tries[-1] if tries else None
    if rung is None:
        return
    yield from _stop_proving(fleet, incident, now)
    if last is None:
        yield from _attempt(fleet, incident, rung, now)
    elif last.state in {ActionState.WOULD, ActionState.WAITING}:
        yield from _go_on(fleet, incident, last, rung, now)
    elif last.state is ActionState.REFUSED:
        yield from ask_person(fleet, incident, f"{last.of} was refused: {last.why}", now)
    elif last.state is ActionState.EXPIRED and fleet.ledger.evidence_at(incident) > last.at:
        yield from _attempt(fleet, incident, harsher(rung, last.of), now)
    elif last.state in USED_UP and not _may_still_show(fleet, incident, last, now):
        yield from _again(fleet, incident, last, rung, now)
    elif last.state is ActionState.COVERED:
        cover = fleet.ledger.actions.get(last.covered_by or "")
        if cover is None or (cover.state not in STARTED and not _may_still_show(fleet, incident, cover, now)):
            yield from _again(fleet, incident, last, rung, now)


def _stop_proving(fleet: Fleet, incident: IncidentLine, now: float) -> Iterator[ActionLine]:
    """A fault that is back needs no proof that it is gone."""
    if is_over(fleet, incident):
        return
    for action in fleet.ledger.of_incident(incident.id, ActionKind.VALIDATE):
        if action.state in STARTED:
            yield move(action, ActionState.CANCELLED, "the fault is back", now)


def _may_still_show(fleet: Fleet, incident: IncidentLine, action: ActionLine, now: float) -> bool:
    """Whether a repair that went well has not had the time yet to clear what stood before it."""
    if action.state is not ActionState.DONE or now >= action.at + PROVEN_S:
        return False
    return all(one.since <= action.at for one in conditions_of(fleet, incident) if one.state != "cleared")


def _go_on(fleet: Fleet, incident: IncidentLine, last: ActionLine, rung: ActionKind, now: float) -> Iterator[AnyLine]:
    """A repair that waits: overtaken by a harsher need, out of date, or looked at again."""
    if RUNGS.index(rung) > RUNGS.index(last.of):
        yield move(last, ActionState.CANCELLED, f"a harsher repair is needed: {rung}", now)
        yield from _attempt(fleet, incident, rung, now)
    elif last.budget is not None and now >= last.at + EVIDENCE_S and not has_fresh_evidence(fleet, incident, now):
        yield move(last, ActionState.EXPIRED, "it waited too long for the budget; fresh evidence is needed", now)
    elif last.of is ActionKind.QUARANTINE:
        yield from quarantine(fleet, incident, _WHY_QUARANTINE, now)
    else:
        yield from _draw_up(fleet, incident, last.of, last.id, last.attempt, now)


def _again(fleet: Fleet, incident: IncidentLine, last: ActionLine, rung: ActionKind, now: float) -> Iterator[AnyLine]:
    """The same rung once more, the next when its attempts are used up, or the harsher one that is needed by now.

    A node that a boot has left silent hears no second order to boot: its power is next. And one that its power has not
    brought back is for a person.
    """
    silent = last.of in WIDE and last.state is ActionState.TIMED_OUT and not _is_back(fleet, incident)
    if silent and last.of is ActionKind.POWER_CYCLE:
        yield from ask_person(fleet, incident, f"{last.of} was sent, and its node is not back: {last.why}", now)
        return
    if silent:
        yield from _attempt(fleet, incident, NEXT_RUNG[last.of], now)
        return
    used = sum(action.of is last.of and action.state in USED_UP for action in tries_of(fleet, incident))
    same = last.of if used < fleet.settings.limits.attempts else NEXT_RUNG.get(last.of)
    if same is not None:
        yield from _attempt(fleet, incident, harsher(rung, same), now)


def _is_back(fleet: Fleet, incident: IncidentLine) -> bool:
    return fleet.node_state(node_of(fleet, incident) or "") == NodeState.LIVE


def _attempt(fleet: Fleet, incident: IncidentLine, rung: ActionKind, now: float) -> Iterator[AnyLine]:
    nth = sum(action.of is rung for action in tries_of(fleet, incident))
    if rung is ActionKind.QUARANTINE:
        yield from quarantine(fleet, incident, _WHY_QUARANTINE, now)
    else:
        yield from _draw_up(fleet, incident, rung, action_id(rung, incident.id, nth), nth + 1, now)


def _draw_up(
    fleet: Fleet, incident: IncidentLine, rung: ActionKind, key: str, attempt: int, now: float
) -> Iterator[ActionLine]:
    place, node = place_of(fleet, incident), node_of(fleet, incident)
    if place is None or node is None or node not in fleet.nodes:
        return
    own = gpus_of(fleet, place)
    gpus = taken(fleet, rung, node, own)
    decision = _decide(fleet, incident, rung, node, own, gpus, now)
    if decision is None:
        return
    if decision.state is ActionState.ORDERED and not fleet.is_tick:
        fleet.agenda.remind(now, place)  # what else is seen at this moment may end the fault, or make it graver
        return
    drawn = draw(
        fleet,
        now,
        rung,
        key,
        Subject(node=node) if rung in WIDE else place,
        state=decision.state,
        incident=incident.id,
        rule=rule_of(fleet, incident),
        attempt=attempt,
        budget=decision.budget,
        disrupts=disrupted(fleet, [gpu for gpu in gpus if gpu != place.gpu]),
        ttl_s=TTL_S[rung],
        covered_by=decision.covered_by,
        why=decision.why,
    )
    line = placed_anew(fleet, drawn)
    if line is not None:
        yield line


def _decide(
    fleet: Fleet, incident: IncidentLine, rung: ActionKind, node: str, own: list[str], gpus: list[str], now: float
) -> Decision | None:
    """What holds the repair of ``own`` GPUs back, which takes all of ``gpus``, first match; None: too early to say."""
    verdict = may_act(fleet, node, rung, now, incident)
    if verdict.leave is Leave.LATER:
        return None
    if verdict.leave is Leave.WOULD:
        return Decision(ActionState.WOULD, verdict.why)
    cover = covering(fleet, rung, node, own)
    if cover is not None:
        return Decision(ActionState.COVERED, f"{cover.of} is under way", covered_by=cover.id)
    if rung is ActionKind.POWER_CYCLE and not is_able(fleet, node, rung):
        return Decision(ActionState.WAITING, "a person must do it: power is not in our hands")
    if not is_able(fleet, node, rung):
        return Decision(ActionState.WAITING, f"a person must do it: {node} has no means for {rung}")
    managed = owners.against_repair(fleet, rung, node)
    if managed is not None:
        return Decision(ActionState.WAITING, managed)
    used = in_use(fleet, rung, [gpu for gpu in gpus if gpu != incident.subject.gpu], now)
    if used:
        replicas = sum(subject.replica is not None for subject in disrupted(fleet, used))
        also = f"{_many(len(used), 'other GPU')} in use and {_many(replicas, 'replica')}"
        return Decision(ActionState.WAITING, f"it also takes {also}: a person must approve it, or they must be empty")
    passed_on = guests(fleet, rung, node)
    if passed_on:
        return Decision(ActionState.WAITING, f"a person must approve it: virtual machines hold {', '.join(passed_on)}")
    if any(is_foreign(fleet, uuid) for uuid in gpus):
        return Decision(ActionState.WAITING, "memory is used there that no process of ours owns: a person must look")
    broken = budget.repairs(fleet)
    if broken is not None:
        return Decision(ActionState.WAITING, "another repair is under way", budget=broken)
    return Decision(ActionState.ORDERED, f"{incident.code}: what it takes is held and empty")


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def say_what_would(fleet: Fleet, incident: IncidentLine, now: float) -> Iterator[AnyLine]:
    """While a level or a pause forbids the hold: what would follow it, once."""
    node, rung = node_of(fleet, incident), first_rung(fleet, incident, now)
    if node is None or rung is None or not fleet.ledger.would_of.get(incident.id):
        return
    verdict = may_act(fleet, node, ActionKind.DRAIN, now, incident)
    if verdict.leave is not Leave.WOULD:
        return
    for replica in replicas_at(fleet, incident):
        yield from would_drain(fleet, replica, for_incident(fleet, incident), verdict.why, now)
    if not tries_of(fleet, incident):
        yield from _attempt(fleet, incident, rung, now)


def quarantine(fleet: Fleet, incident: IncidentLine, why: str, now: float) -> Iterator[AnyLine]:
    """Keep the GPU out until a person releases it."""
    place, node = place_of(fleet, incident), node_of(fleet, incident)
    verdict = may_act(fleet, node, ActionKind.QUARANTINE, now, incident) if node is not None else None
    if place is None or verdict is None or verdict.leave is Leave.LATER:
        return
    go = verdict.leave is Leave.GO
    drawn = draw(
        fleet,
        now,
        ActionKind.QUARANTINE,
        action_id(ActionKind.QUARANTINE, incident.id),
        place,
        state=ActionState.DONE if go else ActionState.WOULD,
        incident=incident.id,
        rule=rule_of(fleet, incident),
        why=why if go else verdict.why,
    )
    line = placed_anew(fleet, drawn)
    if line is not None:
        yield line
        if go:
            yield from ask_person(fleet, incident, why, now)


def ask_person(fleet: Fleet, incident: IncidentLine, why: str, now: float) -> Iterator[NoteLine]:
    """Say once that automation ends here."""
    note = NoteLine(at=now, subject=incident.subject, code=NEEDS_PERSON, text=f"{incident.id}: {why}")
    if (note.subject, note.code, note.text) not in fleet.ledger.notes:
        yield note
