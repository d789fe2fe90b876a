"""Containers that lost their GPU devices: each replica is drained and made anew, one after the other.

Such a replica still serves with the context that it has, and a restart in place would end in the same container. So
it leaves as a replica of a sick GPU does (its replacement first where there is a spare, never under the floor), but its
GPU is sound and is not held. The next one goes once the one before has been replaced. What starts in vain is not
followed by more.
"""

from collections.abc import Iterator

from controller.core.faults.incidents import is_over
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.kinds import STARTED
from controller.core.fleet.replicas import Life, Replica
from controller.core.policy import budget
from controller.core.policy.policy import Leave, may_act
from controller.core.replicas import restart, retire
from controller.core.replicas.retire import Errand
from vocab.events import Recovery
from vocab.lines import ActionLine, IncidentLine, Subject
from vocab.states import ActionKind, ActionState

LOST_DEVICES = "container_device_access_lost"


def one_by_one(fleet: Fleet, now: float) -> Iterator[ActionLine]:
    """The next drain that is due, on each node and of each deployment one at a time; the others' turn comes later."""
    for key in fleet.ledger.docket.incidents(LOST_DEVICES):
        incident = fleet.ledger.incidents[key]
        replica = fleet.roster.living.get(incident.subject.replica or "")
        if replica is not None and not is_over(fleet, incident):
            yield from _turn(fleet, incident, replica, now)


def is_under_way(fleet: Fleet, incident: IncidentLine) -> bool:
    """Whether its replica was told to go: that it then no longer complains is not the end of the story."""
    if incident.code != LOST_DEVICES:
        return False
    drains = fleet.ledger.of_incident(incident.id, ActionKind.DRAIN, ActionKind.STOP_REPLICA)
    return any(action.state in STARTED for action in drains)


def _turn(fleet: Fleet, incident: IncidentLine, replica: Replica, now: float) -> Iterator[ActionLine]:
    if replica.is_dead or fleet.life(replica) is not Life.RUN or not _calls(fleet, replica):
        return
    errand = retire.for_incident(fleet, incident)
    verdict = may_act(fleet, replica.node, ActionKind.DRAIN, now, incident)
    if verdict.leave is Leave.WOULD:
        yield from retire.would_drain(fleet, replica, errand, verdict.why, now)
    elif verdict.leave is not Leave.GO:
        return
    elif replica.deployment not in fleet.deployments:
        yield from retire.await_spare(fleet, replica, errand, "it is not declared: its owner must make it anew", now)
    elif _is_waiting(fleet, replica, errand) or not _is_ours(fleet, replica):
        yield from retire.when_spared(fleet, replica, errand, now)
    elif _is_free(fleet, replica, now):
        yield from retire.await_spare(fleet, replica, errand, "its container must be made anew", now)


def _calls(fleet: Fleet, replica: Replica) -> bool:
    found = [one for one in fleet.conditions_on(replica.subject) if one.code == LOST_DEVICES]
    return any(fleet.recovery(one) is Recovery.RESTART_APP for one in found)


def _is_ours(fleet: Fleet, replica: Replica) -> bool:
    return restart.owner(fleet, replica) == restart.OURS and replica.deployment in fleet.deployments


def _is_waiting(fleet: Fleet, replica: Replica, errand: Errand) -> bool:
    known = fleet.ledger.actions.get(errand.key(ActionKind.DRAIN, replica))
    return known is not None and known.state is ActionState.WAITING


def _is_free(fleet: Fleet, replica: Replica, now: float) -> bool:
    """Whether it is this one's turn: no other one leaves or comes there, and what came before did come up."""
    kin = [*fleet.roster.of(replica.deployment), *fleet.roster.at(replica.node)]
    if any(_is_on_its_way(fleet, other) for other in kin if other.id != replica.id and _is_ours(fleet, other)):
        return False
    broken, until = budget.starts(fleet, replica.deployment, now)
    if broken is not None:
        fleet.agenda.remind(until, replica.subject)
    return broken is None


def _is_on_its_way(fleet: Fleet, replica: Replica) -> bool:
    """Whether it starts, or was told to go and has not gone."""
    actions = fleet.ledger.of_subject(
        Subject(replica=replica.id), ActionKind.START_REPLICA, ActionKind.DRAIN, ActionKind.STOP_REPLICA
    )
    unfinished = STARTED | {ActionState.WAITING}
    return any(action.state in unfinished for action in actions)
