"""Deployments: as many replicas as are wanted, on GPUs that can carry them.

A replica that will go (its GPU is held for a fault, its node is lost, a person drains it) does not count,
so its replacement starts while it still runs. A start is never harmful: no level, pause or cordon budget
forbids it; only failed starts make it wait, with the window for a back-off.
"""

from collections.abc import Iterator

from controller.core import budget, restart
from controller.core.actions import draw, move, placed_anew
from controller.core.fleet import Fleet
from controller.core.names import action_id, replica_id
from controller.core.placement import can_ever, choose
from controller.core.policy import rule_of
from controller.core.replicas import Replica, incident_of, is_leaving, is_on_bad_gpu
from controller.core.retire import ASKED, drain_surplus
from controller.core.settings import START_TTL_S
from controller.core.stimuli import Deployment
from vocab.lines import ActionLine, Subject
from vocab.states import ActionKind, ActionState


def converge(fleet: Fleet, now: float) -> Iterator[ActionLine]:
    """Start what is missing and drain what is too many."""
    names = sorted(name for name in fleet.work.deployments if name in fleet.deployments)
    if not fleet.patience.may_place(now):
        for name in names:
            fleet.work.keep_deployment(name)
        return
    for name in names:
        if fleet.deployments[name].managed_by != "corral":
            continue  # who manages it starts it and ends what is too much
        yield from _start_missing(fleet, fleet.deployments[name], now)
        yield from _drain_surplus(fleet, fleet.deployments[name], now)
        if len(staying(fleet, name)) != fleet.deployments[name].replicas or _waiting(fleet, name):
            fleet.work.keep_deployment(name)


def staying(fleet: Fleet, deployment: str) -> list[Replica]:
    """The replicas that count: alive, not about to go, and not on a GPU that is held for a fault."""
    found = [r for r in fleet.roster.of(deployment) if not r.is_dead or restart.is_under_way(fleet, r)]
    found = [replica for replica in found if not is_leaving(fleet.ledger, replica)]
    return [replica for replica in found if not is_on_bad_gpu(fleet.ledger, replica)]


def _start_missing(fleet: Fleet, deployment: Deployment, now: float) -> Iterator[ActionLine]:
    missing = max(0, deployment.replicas - len(staying(fleet, deployment.name)))
    waiting = _waiting(fleet, deployment.name)
    for action in waiting[missing:]:
        yield move(action, ActionState.CANCELLED, "it is not needed any more", now)
    for action in waiting[:missing]:
        yield from _start(fleet, deployment, action, now)
    for _ in range(missing - len(waiting)):
        yield from _start(fleet, deployment, None, now)


def _waiting(fleet: Fleet, deployment: str) -> list[ActionLine]:
    starts = [fleet.ledger.actions[key] for key in fleet.ledger.starts_of.get(deployment, ())]
    return [start for start in starts if start.state is ActionState.WAITING]


def _start(fleet: Fleet, deployment: Deployment, waiting: ActionLine | None, now: float) -> Iterator[ActionLine]:
    """Order one start, or say what it waits for. ``waiting``: the action that waits already, if one does."""
    nth = len(fleet.ledger.starts_of.get(deployment.name, ()))
    replica = (waiting.subject.replica if waiting else None) or _new_name(fleet, deployment.name, nth)
    incident = waiting.incident if waiting else _incident_without_replacement(fleet, deployment.name)
    broken, until = budget.starts(fleet, deployment.name, now)
    if broken is not None:
        fleet.agenda.remind(until, Subject(deployment=deployment.name))
    target = choose(fleet, deployment, replica, now) if broken is None else None
    why = "a replacement" if incident else "fewer replicas than wanted"
    if broken is not None:
        why = "its last starts failed"
    elif target is None:
        why = _why_no_room(fleet, deployment)
    drawn = draw(
        fleet,
        now,
        ActionKind.START_REPLICA,
        waiting.id if waiting else action_id(ActionKind.START_REPLICA, replica),
        Subject(replica=replica),
        state=ActionState.WAITING if target is None else ActionState.ORDERED,
        incident=incident,
        rule=rule_of(fleet.ledger.incidents[incident]) if incident else f"deployment/{deployment.name}",
        attempt=1 + len(fleet.roster.failures(deployment.name, now - fleet.settings.limits.window_s)),
        budget=broken,
        target=target,
        deployment=deployment.name,
        ttl_s=START_TTL_S,
        why=why,
    )
    line = placed_anew(fleet, drawn)
    if line is not None:
        yield line


def _new_name(fleet: Fleet, deployment: str, nth: int) -> str:
    """A name that no replica has, not even one that an agent still lists from before."""
    name = replica_id(deployment, fleet.settings.epoch, nth)
    while fleet.roster.find(name) is not None:
        nth += 1
        name = replica_id(deployment, fleet.settings.epoch, nth)
    return name


def _why_no_room(fleet: Fleet, deployment: Deployment) -> str:
    wanted = deployment.gpus_per_replica
    if not can_ever(deployment, fleet):
        return f"no node has {wanted} GPUs"
    return "no GPU is free" if wanted == 1 else f"no node has {wanted} GPUs free"


def _incident_without_replacement(fleet: Fleet, deployment: str) -> str | None:
    """The incident of a replica that will go and for which no start was ordered, the oldest first."""
    incidents = [incident_of(fleet.ledger, replica) for replica in fleet.roster.of(deployment)]
    if not any(incidents):
        return None  # a look at all starts for each start would be the square of them
    starts = [fleet.ledger.actions[key] for key in fleet.ledger.starts_of.get(deployment, ())]
    failed = {ActionState.FAILED, ActionState.TIMED_OUT, ActionState.CANCELLED, ActionState.EXPIRED}
    served = {start.incident for start in starts if start.state not in failed}
    return next((incident for incident in incidents if incident is not None and incident not in served), None)


def _drain_surplus(fleet: Fleet, deployment: Deployment, now: float) -> Iterator[ActionLine]:
    """Drain what is too many: first what stands on held GPUs, then what is not ready, then the youngest.

    One whose drain a person called off is the last to go.
    """
    found = staying(fleet, deployment.name)
    too_many = len(found) - deployment.replicas
    if too_many <= 0:
        return
    age = {replica.id: place for place, replica in enumerate(found)}

    def rank(replica: Replica) -> tuple[bool, bool, bool, int]:
        drains = fleet.ledger.of_subject(replica.subject, ActionKind.DRAIN)
        spared = any(drain.rule == ASKED and drain.state is ActionState.CANCELLED for drain in drains)
        held = any(fleet.holds_on(gpu) for gpu in replica.gpus)
        return spared, not held, replica.is_ready, -age[replica.id]

    for replica in sorted(found, key=rank)[:too_many]:
        yield from drain_surplus(fleet, replica, now)
