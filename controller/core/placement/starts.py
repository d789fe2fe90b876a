"""Starts: replicas that are missing are ordered where there is room; the others wait, and say what for.

A start waits for a GPU, for its deployment's back-off after failures, or for its turn to load its weights: a node's
disk and a model's store serve only so many at one time.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.names import action_id, replica_id
from controller.core.fleet.replicas import Replica, incident_of
from controller.core.fleet.settings import START_TTL_S
from controller.core.fleet.stimuli import Deployment
from controller.core.placement.placement import choose
from controller.core.placement.shortage import no_room, waiting_starts
from controller.core.policy import budget
from controller.core.policy.policy import rule_of
from controller.core.replicas.actions import draw, move, placed_anew
from vocab.lines import ActionLine, Budget, Subject, Target
from vocab.states import ActionKind, ActionState, NodeState, ReplicaState

ENDED_BADLY = frozenset({ActionState.FAILED, ActionState.TIMED_OUT, ActionState.CANCELLED, ActionState.EXPIRED})


class Obstacle(msgspec.Struct, frozen=True):
    """What stands against every further start of a deployment in this turn."""

    why: str
    budget: Budget | None = None


def missing(fleet: Fleet, deployment: Deployment, count: int, now: float) -> Iterator[ActionLine]:
    """Order ``count`` more replicas of a deployment, or say what they wait for; what waits beyond is called off."""
    known = waiting_starts(fleet, deployment.name)
    for spare in known[count:]:
        yield move(spare, ActionState.CANCELLED, "it is not needed any more", now)
    if not count:
        return
    orphans = _without_replacement(fleet, deployment.name)
    replacing = _replacing(fleet, deployment, count)
    obstacle = _obstacle(fleet, deployment, now)
    for nth in range(count):
        action = known[nth] if nth < len(known) else None
        if obstacle is not None and action is not None and action.budget == obstacle.budget:
            continue  # it says so already
        incident = action.incident if action is not None else next(orphans, None)
        replica = (action.subject.replica if action is not None else None) or _new_name(fleet, deployment.name)
        target, full = (
            (None, False)
            if obstacle is not None
            else _room(fleet, deployment, replica, now, spares=incident is not None or nth < replacing)
        )
        if target is None and obstacle is None:
            broken = _loads_of_node(fleet) if full else None
            if action is not None and _waits_for(action, broken):
                obstacle = Obstacle(action.why, broken)
                continue  # it says so already; to count again what keeps work off each GPU would be dear
            obstacle = Obstacle("its turn to load its weights" if full else no_room(fleet, deployment, now), broken)
        yield from _say(fleet, deployment, replica, action, incident, target, obstacle, now)
        if obstacle is None:
            obstacle = _obstacle(fleet, deployment, now)


def _obstacle(fleet: Fleet, deployment: Deployment, now: float) -> Obstacle | None:
    broken, until = budget.starts(fleet, deployment.name, now)
    if broken is not None:
        fleet.agenda.remind(until, Subject(deployment=deployment.name))
        return Obstacle("its last starts failed", broken)
    if deployment.nodes_per_replica > 1:
        broken, until = budget.group_starts(fleet, deployment.name, now)
        if broken is not None:
            fleet.agenda.remind(until, Subject(deployment=deployment.name))
            return Obstacle("back-off after a group that failed", broken)
    limit = fleet.settings.limits.loads_model
    loads = sum(start.deployment == deployment.name for start in _loading(fleet))
    if loads < limit:
        return None
    return Obstacle("its turn to load its weights", Budget(limit=limit, used=loads, of=f"loads of {deployment.name}"))


def _loading(fleet: Fleet) -> list[ActionLine]:
    """The starts that are under way: each reads its weights."""
    return [a for key in fleet.ledger.started if (a := fleet.ledger.actions[key]).of is ActionKind.START_REPLICA]


def _replacing(fleet: Fleet, deployment: Deployment, count: int) -> int:
    """How many of the missing stand in for replicas that will go, beside those that are starting already."""
    replicas = fleet.roster.of(deployment.name)
    staying = deployment.replicas - count
    starting = sum(fleet.word_of(replica) is ReplicaState.STARTING for replica in replicas)
    return max(0, len(replicas) - staying - starting)


def _room(
    fleet: Fleet, deployment: Deployment, replica: str, now: float, *, spares: bool
) -> tuple[Target | None, bool]:
    """Where it goes, and whether there was room only on nodes that load as much as they may."""
    targets = [start.target for start in _loading(fleet) if start.target is not None]
    at = Counter(node for target in targets for node in {target.node, *target.nodes})
    full = {node for node, loads in at.items() if loads >= fleet.settings.limits.loads_node}
    target = choose(fleet, deployment, replica, now, frozenset(full), spares=spares)
    if target is not None or not full:
        return target, False
    return None, choose(fleet, deployment, replica, now, spares=spares) is not None


def _loads_of_node(fleet: Fleet) -> Budget:
    limit = fleet.settings.limits.loads_node
    return Budget(limit=limit, used=limit, of="loads on one node")


def _say(
    fleet: Fleet,
    deployment: Deployment,
    replica: str,
    known: ActionLine | None,
    incident: str | None,
    target: Target | None,
    obstacle: Obstacle | None,
    now: float,
) -> Iterator[ActionLine]:
    why = obstacle.why if obstacle is not None else "a replacement" if incident else "fewer replicas than wanted"
    drawn = draw(
        fleet,
        now,
        ActionKind.START_REPLICA,
        known.id if known is not None else action_id(ActionKind.START_REPLICA, replica),
        Subject(replica=replica),
        state=ActionState.WAITING if target is None else ActionState.ORDERED,
        incident=incident,
        rule=rule_of(fleet, fleet.ledger.incidents[incident]) if incident else f"deployment/{deployment.name}",
        attempt=1 + len(fleet.roster.failures(deployment.name, now - fleet.settings.limits.window_s)),
        budget=obstacle.budget if obstacle is not None else None,
        target=target,
        deployment=deployment.name,
        ttl_s=START_TTL_S,
        why=why,
    )
    line = placed_anew(fleet, drawn)
    if line is None and known is not None and target is None and not _waits_for(known, drawn.budget):
        line = drawn  # it waits still, for something else
    if line is not None:
        yield line


def _waits_for(start: ActionLine, broken: Budget | None) -> bool:
    """Whether a start that waits does so for this: the same budget whatever its count, or None: for a GPU."""
    return (start.budget and start.budget.of) == (broken and broken.of)


def _new_name(fleet: Fleet, deployment: str) -> str:
    """A name that no replica has, not even one that an agent still lists from before."""
    nth = len(fleet.ledger.starts_of.get(deployment, ()))
    name = replica_id(deployment, fleet.settings.epoch, nth)
    while fleet.roster.find(name) is not None:
        nth += 1
        name = replica_id(deployment, fleet.settings.epoch, nth)
    return name


def _without_replacement(fleet: Fleet, deployment: str) -> Iterator[str]:
    """The incidents of replicas that will go and for which no start was ordered, the oldest first."""
    replicas = fleet.roster.of(deployment)
    found = [incident_of(fleet.ledger, replica) or _lost_with(fleet, replica) for replica in replicas]
    if not any(found):
        return
    starts = (fleet.ledger.actions[key] for key in fleet.ledger.starts_of.get(deployment, ()))
    served = Counter(start.incident for start in starts if start.state not in ENDED_BADLY)
    for incident in found:
        if incident is None:
            continue
        if served[incident] > 0:
            served[incident] -= 1
        else:
            yield incident


def _lost_with(fleet: Fleet, replica: Replica) -> str | None:
    """The incident of a node of it that is lost."""
    lost = (node for node in replica.nodes if fleet.node_state(node) == NodeState.LOST)
    keys = (key for node in lost for key in fleet.ledger.incidents_of.get(Subject(node=node), ()))
    return next((key for key in keys if fleet.ledger.incidents[key].code == "node_lost"), None)
