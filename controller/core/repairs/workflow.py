"""A fault's way, as tables: hold, replace, drain, stop, repair, validate, probation, release.

While something is wrong an incident goes the *sick* way, and once all its conditions have ended the *well*
way. Its step is the first of that way which is not finished, so a core that was restarted anywhere is at
the right step, and a signal that returns by itself leads straight to the release. A step's deed yields
what is due now; calling it again yields nothing until something has moved.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum

import msgspec

from controller.core.faults import history, incidents
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.kinds import STARTED, WIDE
from controller.core.fleet.replicas import Life
from controller.core.policy.policy import OWNER, wants_hold
from controller.core.repairs import disruption, repair, returning, validation
from controller.core.repairs.holds import is_fence, standing_for
from controller.core.repairs.release import let_go
from controller.core.replicas import recreate, retire
from vocab.lines import AnyLine, IncidentLine, Subject
from vocab.states import ActionKind, ActionState, Phase


class Step(StrEnum):
    """Where an incident stands."""

    WATCH = "watch"  # nothing to do but to see it end
    HOLD = "hold"
    DRAIN = "drain"  # replace, drain, stop
    REPAIR = "repair"
    VALIDATE = "validate"
    PROBATION = "probation"
    RELEASE = "release"


Lines = Iterator[AnyLine]


class Stage(msgspec.Struct, frozen=True):
    """One step: when it is finished, and what is done until then."""

    step: Step
    finished: Callable[[Fleet, IncidentLine, float], bool]
    deed: Callable[[Fleet, IncidentLine, float], Lines]


def _never(_fleet: Fleet, _incident: IncidentLine, _now: float) -> bool:
    return False


def _nothing(_fleet: Fleet, _incident: IncidentLine, _now: float) -> Lines:
    return iter(())


def _is_held(fleet: Fleet, incident: IncidentLine, _now: float) -> bool:
    return standing_for(fleet, incident) is not None


def _is_empty(fleet: Fleet, incident: IncidentLine, now: float) -> bool:
    """Whether all replicas that the fault takes are gone; on its own GPU nothing else may be left, either.

    Processes that cannot be ended wait for the boot that ends them, and not the boot for them.
    """
    rung, gpu = history.first_rung(fleet, incident, now), incident.subject.gpu
    if gpu is not None and (fleet.roster.on(gpu) if rung is None else disruption.residents(fleet, rung, gpu)):
        return False
    leaving = retire.replicas_at(fleet, incident)
    return all(rung in WIDE and replica.is_remains for replica in leaving)


def _release(fleet: Fleet, incident: IncidentLine, now: float) -> Lines:
    yield from let_go(fleet, incident, "its conditions have ended", now)


def _forget(fleet: Fleet, incident: IncidentLine, now: float) -> Lines:
    yield from let_go(fleet, incident, "it left nothing standing", now)


def _is_let_in(fleet: Fleet, incident: IncidentLine, now: float) -> bool:
    return not returning.is_held(fleet, incident) or validation.is_proven(fleet, incident, now)


def _welcome(fleet: Fleet, incident: IncidentLine, now: float) -> Lines:
    yield from let_go(fleet, incident, "the node is back", now)


SICK: tuple[Stage, ...] = (
    Stage(Step.HOLD, _is_held, repair.say_what_would),  # holds.for_faults places it
    Stage(Step.DRAIN, _is_empty, retire.empty),
    Stage(Step.REPAIR, _never, repair.climb),
)
WELL: tuple[Stage, ...] = (
    Stage(Step.VALIDATE, validation.is_passed, validation.order),
    Stage(Step.PROBATION, validation.is_kept, _nothing),
    Stage(Step.RELEASE, _never, _release),
)
WATCH: tuple[Stage, ...] = (Stage(Step.WATCH, _never, _nothing),)


MOMENT: tuple[Stage, ...] = (
    Stage(Step.WATCH, incidents.has_settled, _nothing),
    Stage(Step.RELEASE, _never, _forget),
)


RETURN: tuple[Stage, ...] = (
    Stage(Step.WATCH, returning.is_back, _nothing),
    Stage(Step.HOLD, returning.is_received, returning.receive),
    Stage(Step.VALIDATE, _is_let_in, validation.order_on_return),
    Stage(Step.RELEASE, _never, _welcome),
)


def stage_of(fleet: Fleet, incident: IncidentLine, now: float) -> Stage:
    """The step at which an open incident stands."""
    if repair.is_under_way(fleet, incident):
        return SICK[-1]
    if recreate.is_under_way(fleet, incident):
        return WATCH[0]
    if incidents.is_momentary_one(fleet, incident) and not wants_hold(fleet, incident):
        return next(stage for stage in MOMENT if not stage.finished(fleet, incident, now))
    if incident.code == returning.LOST:
        return next(stage for stage in RETURN if not stage.finished(fleet, incident, now))
    way = WELL if incidents.is_over(fleet, incident) else SICK if wants_hold(fleet, incident) else WATCH
    return next(stage for stage in way if not stage.finished(fleet, incident, now))


def advance(fleet: Fleet, now: float) -> Lines:
    """What is due on the way of every open incident."""
    marks = fleet.work.marks  # of the beginning of this round: what has changed in it is looked at in the next
    for incident in fleet.restless():
        lines = list(stage_of(fleet, incident, now).deed(fleet, incident, now))
        if not lines and incident.id in marks:
            fleet.work.quiet[incident.id] = marks[incident.id]
        yield from lines


def phase_of(fleet: Fleet, gpu: str, now: float) -> Phase:
    """Where a GPU stands on a fault's way: what is being done to it, not what is waited for."""
    if fleet.has_left(gpu):
        return Phase.REMOVED
    if fleet.is_clear(gpu):
        return Phase.IN_SERVICE
    for incident in _stories(fleet, gpu):
        phase = _phase_in(fleet, incident, now)
        if phase is not None:
            return phase
    return _phase_of_work(fleet, gpu)


def _stories(fleet: Fleet, gpu: str) -> list[IncidentLine]:
    """The open incidents that are about a GPU or about its node."""
    node = fleet.gpus[gpu].node if gpu in fleet.gpus else ""
    ledger = fleet.ledger
    keys = [*ledger.incidents_of.get(Subject(gpu=gpu), ()), *ledger.incidents_of.get(Subject(node=node), ())]
    return [ledger.incidents[key] for key in keys]


def _phase_in(fleet: Fleet, incident: IncidentLine, now: float) -> Phase | None:
    if standing_for(fleet, incident) is None:
        return None
    if any(action.state is ActionState.DONE for action in fleet.ledger.of_incident(incident.id, ActionKind.QUARANTINE)):
        return Phase.QUARANTINED
    step = stage_of(fleet, incident, now).step
    if step is Step.PROBATION:
        return Phase.PROBATION
    if step is Step.VALIDATE and _is_ordered(fleet, incident, ActionKind.VALIDATE):
        return Phase.VALIDATING
    if step is Step.REPAIR and repair.is_under_way(fleet, incident):
        return Phase.REPAIRING
    return None


def _is_ordered(fleet: Fleet, incident: IncidentLine, of: ActionKind) -> bool:
    return any(action.state in STARTED for action in fleet.ledger.of_incident(incident.id, of))


def _phase_of_work(fleet: Fleet, gpu: str) -> Phase:
    """Fenced while a held GPU still has a replica, draining once that was told to go."""
    holds = fleet.holds_on(gpu)
    working = [replica for replica in fleet.roster.on(gpu) if not replica.is_dead]
    if any(fleet.life(replica) is not Life.RUN for replica in working) and holds:
        return Phase.DRAINING
    by_policy = any(hold.owner == OWNER and hold.incident is not None for hold in holds)
    if any(is_fence(hold) for hold in holds) or (by_policy and working):
        return Phase.FENCED
    return Phase.IN_SERVICE
