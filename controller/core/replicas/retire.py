"""How a replica leaves: drained once its replacement is ready, or once enough others serve; then stopped.

If there is no spare, a replica on a bad GPU that still steps stays, fenced, as long as the deployment would
fall under its floor without it. One that steps no more is not waited for.
"""

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from controller.core.fleet import groups
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.kinds import STARTED
from controller.core.fleet.names import action_id
from controller.core.fleet.replicas import Life, Replica, incident_of, is_leaving, was_spared
from controller.core.fleet.settings import OWNER_S
from controller.core.fleet.stimuli import Deployment
from controller.core.policy import budget
from controller.core.policy.place import place_of
from controller.core.policy.policy import OWNER, Leave, Verdict, may_act_on, rule_of
from controller.core.replicas import owners, restart, site_units
from controller.core.replicas.actions import draw, placed_anew
from vocab.lines import ActionLine, Budget, IncidentLine, Subject
from vocab.states import ActionKind, ActionState
from vocab.units import KIND

ASKED = "operator/drain"
SURPLUS = "deployment/surplus"
COMES = "its replacement is starting"


class Errand(msgspec.Struct, frozen=True):
    """Why a replica is to go: the rule, the incident if there is one, and what tells this drain from another."""

    rule: str
    incident: str | None = None
    mark: str = ""
    turn: int = 0  # of a replica that its owner may start again under the same name: how often it was drained for it

    def key(self, of: ActionKind, replica: Replica) -> str:
        """The id of the action: one drain a replica and reason, one stop a replica."""
        if of is ActionKind.STOP_REPLICA:
            return action_id(of, replica.id)
        again = (self.turn,) if self.turn else ()
        return action_id(of, replica.id, self.incident or self.mark or self.rule, *again)


def for_incident(fleet: Fleet, incident: IncidentLine) -> Errand:
    """The errand of a replica on a GPU that is held for a fault."""
    return Errand(rule_of(fleet, incident), incident.id)


def empty(fleet: Fleet, incident: IncidentLine, now: float) -> Iterator[ActionLine]:
    """Drain the replicas that an incident takes: those of its GPU, or of its node."""
    for replica in replicas_at(fleet, incident):
        if fleet.life(replica) is not Life.RUN or replica.is_dead:
            continue
        verdict = may_act_on(fleet, replica, ActionKind.DRAIN, now, incident)
        if verdict.leave is Leave.WOULD:
            yield from would_drain(fleet, replica, for_incident(fleet, incident), verdict.why, now)
        elif verdict.leave is Leave.GO:
            yield from when_spared(fleet, replica, for_incident(fleet, incident), now)


def replicas_at(fleet: Fleet, incident: IncidentLine) -> list[Replica]:
    """The replicas that are to leave for an incident: not those that a person has spared."""
    place = place_of(fleet, incident) or incident.subject
    if place.gpu is not None:
        return [r for r in fleet.roster.on(place.gpu) if not was_spared(fleet.ledger, r, incident.id)]
    return [r for r in fleet.roster.at(place.node or "") if incident_of(fleet.ledger, r) is not None]


def off_suspects(fleet: Fleet, now: float) -> Iterator[ActionLine]:
    """Drain replicas from GPUs that are held for a suspicion: that incident is about the replica, not the GPU."""
    for key in fleet.ledger.docket.suspecting():
        incident = fleet.ledger.incidents[key]
        for suspect in incident.suspects if incident.subject.gpu is None else ():
            place = Subject(gpu=suspect.gpu)
            if any(hold.incident == key for hold in fleet.ledger.standing(place, OWNER)):
                yield from empty(fleet, replace(incident, subject=place), now)


def asked(fleet: Fleet, now: float) -> Iterator[ActionLine]:
    """Go on with drains that no incident leads: of a person (no level and no pause forbids them) or of a surplus."""
    for action in fleet.ledger.live(ActionKind.DRAIN):
        replica = fleet.roster.living.get(action.subject.replica or "")
        if action.incident is None and action.state is ActionState.WAITING and replica is not None:
            if action.rule != ASKED and may_act_on(fleet, replica, ActionKind.DRAIN, now).leave is not Leave.GO:
                continue
            for line in when_spared(fleet, replica, Errand(action.rule), now):
                drawn = replace(line, id=action.id)
                if action.rule == ASKED and drawn.state is ActionState.WAITING:
                    yield from _if_other(action, drawn)
                else:
                    yield from unless_said(fleet, drawn)


def _if_other(known: ActionLine, drawn: ActionLine) -> Iterator[ActionLine]:
    """A person's drain that goes on waiting, where it waits for something else now: `corral status` says for what.

    That the replacement of one that was just asked for starts is as it should be, and not said.
    """
    is_usual = drawn.why == COMES and known.budget is None
    if (drawn.why, drawn.budget) != (known.why, known.budget) and not is_usual:
        yield drawn


def ask(fleet: Fleet, replica: Replica, why: str, now: float) -> ActionLine:
    """A person's drain: it waits until the replica can be spared, and its replacement starts at once."""
    nth = len(fleet.ledger.of_subject(replica.subject, ActionKind.DRAIN))
    return _drain(fleet, replica, Errand(ASKED, mark=f"{ASKED}/{nth}"), ActionState.WAITING, why, now)


def drain_surplus(fleet: Fleet, replica: Replica, now: float) -> Iterator[ActionLine]:
    """Drain a replica that is one too many."""
    verdict = may_act_on(fleet, replica, ActionKind.DRAIN, now)
    if verdict.leave is Leave.WOULD:
        yield from would_drain(fleet, replica, Errand(SURPLUS), verdict.why, now)
    elif verdict.leave is Leave.GO:
        broken = budget.floor(fleet, replica)
        state = ActionState.ORDERED if broken is None else ActionState.WAITING
        drawn = _drain(fleet, replica, Errand(SURPLUS), state, "more replicas than wanted", now, broken)
        yield from unless_said(fleet, drawn)


def would_drain(fleet: Fleet, replica: Replica, errand: Errand, why: str, now: float) -> Iterator[ActionLine]:
    """Say that it would be drained."""
    yield from unless_said(fleet, _drain(fleet, replica, errand, ActionState.WOULD, why, now))


def await_spare(fleet: Fleet, replica: Replica, errand: Errand, why: str, now: float) -> Iterator[ActionLine]:
    """A drain that waits until the replica can be spared: from then on it will go, and its replacement starts."""
    yield from unless_said(fleet, _drain(fleet, replica, errand, ActionState.WAITING, why, now))


def when_spared(fleet: Fleet, replica: Replica, errand: Errand, now: float) -> Iterator[ActionLine]:
    """Order the drain if the replica can be spared; say what it waits for if no replacement is on its way."""
    if not (fleet.patience.may_place(now) and all(fleet.patience.knows(node, now) for node in replica.nodes)):
        return
    owner = restart.owner(fleet, replica)
    deployment = fleet.deployments.get(replica.deployment)
    why, broken = "it no longer steps", None
    if owner != restart.OURS:
        turn, against = owners.turn_of(fleet, replica, errand.incident, errand.rule)
        errand = replace(errand, turn=turn)
        against = against or owners.against_drain(fleet, replica, owner)
        if against is not None:
            yield from unless_said(fleet, _drain(fleet, replica, errand, ActionState.WAITING, against, now))
            return
        why = f"its owner ({owner}) is asked to end it"
    if deployment is not None and replica.is_stepping:
        if _is_replacement_coming(fleet, deployment):
            if errand.rule == ASKED:
                yield _drain(fleet, replica, errand, ActionState.WAITING, COMES, now)
            return
        if _is_replaced(fleet, deployment):
            why = "its replacement is ready"
        else:
            broken = budget.floor(fleet, replica)
            enough = "without it too few would serve" if broken else "the others are enough"
            enough = "its own is lost" if budget.is_lost(fleet, replica) else enough
            why = f"no GPU is free for a replacement; {enough}"
    state = ActionState.ORDERED if broken is None else ActionState.WAITING
    drawn = _drain(fleet, replica, errand, state, why, now, broken)
    if replica.observed and owners.kind_of(fleet, replica) == KIND and broken is None:
        drawn = replace(drawn, target=site_units.place_of(replica))
    yield from unless_said(fleet, drawn)


def unless_said(fleet: Fleet, drawn: ActionLine) -> Iterator[ActionLine]:
    """The line, if it says anything new."""
    line = placed_anew(fleet, drawn)
    if line is not None:
        yield line


def _drain(
    fleet: Fleet,
    replica: Replica,
    errand: Errand,
    state: ActionState,
    why: str,
    now: float,
    broken: Budget | None = None,
) -> ActionLine:
    times = times_of(fleet, replica)
    return draw(
        fleet,
        now,
        ActionKind.DRAIN,
        errand.key(ActionKind.DRAIN, replica),
        replica.subject,
        state=state,
        incident=errand.incident,
        rule=errand.rule,
        budget=broken,
        ttl_s=OWNER_S if replica.observed else times.prestop_s + times.drain_s,
        why=groups.together(replica.nodes, why),
    )


def times_of(fleet: Fleet, replica: Replica) -> Deployment:
    """The deployment whose drain times count; the defaults if it is not declared any more."""
    return fleet.deployments.get(replica.deployment) or Deployment(name=replica.deployment)


def _is_replacement_coming(fleet: Fleet, deployment: Deployment) -> bool:
    starts = fleet.ledger.starts_of.get(deployment.name, ())
    return any(fleet.ledger.actions[key].state in STARTED for key in starts)


def _is_replaced(fleet: Fleet, deployment: Deployment) -> bool:
    ready = [r for r in fleet.roster.of(deployment.name) if r.is_ready and not is_leaving(fleet.ledger, r)]
    return sum(1 for _ in budget.reliable(fleet, ready)) >= deployment.replicas


def changed(fleet: Fleet) -> list[Replica]:
    """The living replicas that were touched, or kept in mind, since the rules came to rest."""
    return [fleet.roster.living[name] for name in fleet.work.replicas if name in fleet.roster.living]


def cut_off(fleet: Fleet, now: float) -> Iterator[ActionLine]:
    """Stop what did not end within its drain, and what did not become ready within its start."""
    for replica in changed(fleet):
        late = _late(fleet, replica)
        if late is None or replica.observed or fleet.life(replica) is Life.STOP:
            continue
        fleet.work.keep_replica(replica.id)
        errand = Errand(late.rule, late.incident)
        if late.of is ActionKind.START_REPLICA or late.rule == ASKED:  # it serves nobody, or a person wants it gone
            verdict = Verdict(Leave.GO)
        else:
            led_by = fleet.ledger.incidents.get(late.incident or "")
            verdict = may_act_on(fleet, replica, ActionKind.STOP_REPLICA, now, led_by)
        if verdict.leave is Leave.GO:
            why = f"its {late.of} {late.state}: {late.why}"
            yield from unless_said(fleet, stop(fleet, replica, errand, ActionState.ORDERED, why, now))
        elif verdict.leave is Leave.WOULD:
            yield from unless_said(fleet, stop(fleet, replica, errand, ActionState.WOULD, verdict.why, now))


def _late(fleet: Fleet, replica: Replica) -> ActionLine | None:
    """The drain or start of a replica that did not end well, or the start that a person called off."""
    for action in reversed(fleet.ledger.of_subject(replica.subject, ActionKind.DRAIN, ActionKind.START_REPLICA)):
        cancelled = action.of is ActionKind.START_REPLICA and action.state is ActionState.CANCELLED
        if cancelled or action.state in {ActionState.TIMED_OUT, ActionState.FAILED}:
            return action
    return None


def stop(fleet: Fleet, replica: Replica, errand: Errand, state: ActionState, why: str, now: float) -> ActionLine:
    """The stop of a replica, in this state."""
    return draw(
        fleet,
        now,
        ActionKind.STOP_REPLICA,
        errand.key(ActionKind.STOP_REPLICA, replica),
        replica.subject,
        state=state,
        incident=errand.incident,
        rule=errand.rule,
        ttl_s=times_of(fleet, replica).kill_s,
        why=groups.together(replica.nodes, why),
    )
