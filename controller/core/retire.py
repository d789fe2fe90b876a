"""How a replica leaves: drained once its replacement is ready, or once enough others serve; then stopped.

If there is no spare, a replica on a bad GPU that still steps stays, fenced, as long as the deployment would
fall under its floor without it. One that steps no more is not waited for.
"""

from collections.abc import Iterator

from controller.core import budget
from controller.core.actions import draw, placed_anew
from controller.core.fleet import Fleet
from controller.core.ledger import STARTED
from controller.core.names import action_id
from controller.core.policy import Leave, may_act, rule_of
from controller.core.replicas import Life, Replica, incident_of, is_leaving
from controller.core.settings import STOP_GRACE_S
from controller.core.stimuli import Deployment
from vocab.lines import ActionLine, Budget, IncidentLine
from vocab.states import ActionKind, ActionState

ASKED = "operator/drain"
SURPLUS = "deployment/surplus"
GONE = "replica/gone"


def empty(fleet: Fleet, incident: IncidentLine, now: float) -> Iterator[ActionLine]:
    """Drain the replicas of an incident's GPU."""
    for replica in fleet.living_on(incident.subject.gpu or ""):
        if fleet.life(replica) is Life.RUN and incident_of(fleet.ledger, replica) is not None and not replica.is_dead:
            verdict = may_act(fleet, replica.node, ActionKind.DRAIN, now)
            key = action_id(ActionKind.DRAIN, replica.id, incident.id)
            if verdict.leave is Leave.WOULD:
                yield from _drain(
                    fleet, replica, key, now, rule_of(incident), incident.id, ActionState.WOULD, verdict.why
                )
            elif verdict.leave is Leave.GO:
                yield from when_spared(fleet, replica, key, now, rule_of(incident), incident.id)


def asked(fleet: Fleet, now: float) -> Iterator[ActionLine]:
    """Go on with drains that no incident leads: of a person (no level and no pause forbids them) or of a surplus."""
    for action in fleet.ledger.live(ActionKind.DRAIN):
        replica = fleet.replicas.get(action.subject.replica or "")
        if action.incident is None and action.state is ActionState.WAITING and replica is not None:
            yield from when_spared(fleet, replica, action.id, now, action.rule, None)


def drain_surplus(fleet: Fleet, replica: Replica, now: float) -> Iterator[ActionLine]:
    """Drain a replica that is one too many."""
    verdict = may_act(fleet, replica.node, ActionKind.DRAIN, now)
    if verdict.leave is Leave.LATER:
        return
    go = verdict.leave is Leave.GO
    broken = budget.floor(fleet, replica) if go else None
    state = ActionState.WOULD if not go else ActionState.ORDERED if broken is None else ActionState.WAITING
    why = "more replicas than wanted" if go else verdict.why
    key = action_id(ActionKind.DRAIN, replica.id, SURPLUS)
    yield from _drain(fleet, replica, key, now, SURPLUS, None, state, why, broken)


def when_spared(
    fleet: Fleet, replica: Replica, key: str, now: float, rule: str, incident: str | None
) -> Iterator[ActionLine]:
    """Order the drain if the replica can be spared; say what it waits for if no replacement is on its way."""
    if not (fleet.may_place(now) and fleet.knows(replica.node, now)):
        return
    deployment = fleet.deployments.get(replica.deployment)
    why, broken = "it no longer steps", None
    if deployment is not None and replica.is_stepping:
        if _is_replacement_coming(fleet, deployment):
            return
        if _is_replaced(fleet, deployment):
            why = "its replacement is ready"
        else:
            why, broken = "no GPU is free for a replacement; the others are enough", budget.floor(fleet, replica)
    if broken is not None:
        why = "no GPU is free for a replacement, and without it too few would serve"
    state = ActionState.ORDERED if broken is None else ActionState.WAITING
    yield from _drain(fleet, replica, key, now, rule, incident, state, why, broken)


def _drain(
    fleet: Fleet,
    replica: Replica,
    key: str,
    now: float,
    rule: str,
    incident: str | None,
    state: ActionState,
    why: str,
    broken: Budget | None = None,
) -> Iterator[ActionLine]:
    times = times_of(fleet, replica)
    drawn = draw(
        fleet,
        now,
        ActionKind.DRAIN,
        key,
        replica.subject,
        state=state,
        incident=incident,
        rule=rule,
        budget=broken,
        ttl_s=times.prestop_s + times.drain_s,
        why=why,
    )
    line = placed_anew(fleet, drawn)
    if line is not None:
        yield line


def times_of(fleet: Fleet, replica: Replica) -> Deployment:
    """The deployment whose drain times count; the defaults if it is not declared any more."""
    return fleet.deployments.get(replica.deployment) or Deployment(name=replica.deployment)


def _is_replacement_coming(fleet: Fleet, deployment: Deployment) -> bool:
    starts = fleet.ledger.starts_of.get(deployment.name, ())
    return any(fleet.ledger.actions[key].state in STARTED for key in starts)


def _is_replaced(fleet: Fleet, deployment: Deployment) -> bool:
    ready = [r for r in fleet.living_of(deployment.name) if r.is_ready and not is_leaving(fleet.ledger, r)]
    return len(ready) >= deployment.replicas


def cut_off(fleet: Fleet, now: float) -> Iterator[ActionLine]:
    """Stop what did not end within its drain, and what did not become ready within its start."""
    for replica in list(fleet.replicas.values()):
        late = _late(fleet, replica)
        if late is None or fleet.life(replica) in {Life.STOP, Life.ENDED}:
            continue
        verdict = may_act(fleet, replica.node, ActionKind.STOP_REPLICA, now)
        harmless = late.of is ActionKind.START_REPLICA or late.rule == ASKED
        if verdict.leave is Leave.LATER and not harmless:
            continue
        state = ActionState.ORDERED if harmless or verdict.leave is Leave.GO else ActionState.WOULD
        why = f"{late.of} {late.state}" if state is ActionState.ORDERED else verdict.why
        line = placed_anew(fleet, _stop(fleet, replica, now, late.incident, late.rule, state, why))
        if line is not None:
            yield line


def _late(fleet: Fleet, replica: Replica) -> ActionLine | None:
    """The drain or start of a replica that did not end well, or the start that a person called off."""
    for action in reversed(fleet.ledger.of_subject(replica.subject, ActionKind.DRAIN, ActionKind.START_REPLICA)):
        cancelled = action.of is ActionKind.START_REPLICA and action.state is ActionState.CANCELLED
        if cancelled or action.state in {ActionState.TIMED_OUT, ActionState.FAILED}:
            return action
    return None


def bury(fleet: Fleet, now: float) -> Iterator[ActionLine]:
    """Take away what has died and what its agent no longer restarts: there is nothing left to harm."""
    for replica in list(fleet.replicas.values()):
        if fleet.life(replica) is not Life.RUN or not fleet.knows(replica.node, now):
            continue
        incident = incident_of(fleet.ledger, replica)
        if replica.is_dead:
            why = f"it has ended and is not restarted: {_how_it_ended(replica)}"
            yield _stop(fleet, replica, now, incident, budget.GAVE_UP, ActionState.DONE, why)
        elif replica.start is None and replica.status is None and fleet.node(replica.node).replicas_at is not None:
            yield _stop(
                fleet, replica, now, incident, GONE, ActionState.DONE, "found once, its node no longer lists it"
            )


def _how_it_ended(replica: Replica) -> str:
    exit_ = replica.status.exit if replica.status else None
    if exit_ is None:
        return "no exit was seen"
    return exit_.reason or exit_.text or f"exit code {exit_.code}"


def _stop(
    fleet: Fleet, replica: Replica, now: float, incident: str | None, rule: str, state: ActionState, why: str
) -> ActionLine:
    return draw(
        fleet,
        now,
        ActionKind.STOP_REPLICA,
        action_id(ActionKind.STOP_REPLICA, replica.id),
        replica.subject,
        state=state,
        incident=incident,
        rule=rule,
        ttl_s=times_of(fleet, replica).kill_s + STOP_GRACE_S,
        why=why,
    )
