"""What a node is told: its holds, its replicas and their phases, the orders that are out. A pure look.

A replica stays in the list until it has ended, so an agent that missed a message still converges. The
agent's own fences are not told back to it. Of a group over several nodes the leader alone is drained: it ends the
requests that are open, for which it needs the others, and these are stopped once it has exited.
"""

from urllib.parse import urlsplit

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.groups import has_ended, port_of
from controller.core.fleet.replicas import Life, Replica
from controller.core.fleet.settings import Pool
from controller.core.fleet.stimuli import Deployment
from controller.core.policy import shadow
from controller.core.policy.pause import is_paused
from controller.core.repairs.holds import is_fence
from controller.core.replicas import site_units
from vocab.lines import ActionLine, Subject
from vocab.messages import Desired, HoldSpec, Order, ReplicaSpec
from vocab.observations import Member
from vocab.states import REPAIRS, ActionKind, ActionState, Level

ON_THE_NODE = {ActionKind.VALIDATE, *REPAIRS} - {ActionKind.POWER_CYCLE}  # that is the controller's own deed
PHASES = {Life.RUN: "run", Life.DRAIN: "drain", Life.STOP: "stop"}
SAID_BY = {  # which action a phase answers
    Life.RUN: ActionKind.START_REPLICA,
    Life.DRAIN: ActionKind.DRAIN,
    Life.STOP: ActionKind.STOP_REPLICA,
}


def desired(fleet: Fleet, node: str) -> Desired | None:
    """None while it is not known what the node runs: it then keeps what it was told last."""
    known = fleet.node(node)
    if known.facts is None or known.replicas_at is None:
        return None
    return Desired(
        node=node,
        epoch=fleet.settings.epoch,
        generation=0,
        level=fleet.level(node) or Level.OBSERVE,
        paused=is_paused(fleet, node),
        holds=_holds(fleet, node),
        replicas=_replicas(fleet, node),
        orders=_orders(fleet, node),
        healthy=_healthy(fleet, node),
        shadowed=_shadowed(fleet, node),
    )


def _shadowed(fleet: Fleet, node: str) -> tuple[str, ...]:
    """The codes for which an agent fences by itself, and whose rules are in shadow there."""
    settings = fleet.settings
    pool = settings.pools.get(fleet.pool_of(node) or "", Pool())
    named = {*fleet.ledger.demoted, *settings.shadowed, *settings.rules, *pool.rules}
    certain = sorted(code for code in named if fleet.row(code).certain)
    quiet = [code for code in certain if shadow.why(fleet, code, node, None) is not None]
    newly = [code for code, rule in settings.kept.items() if rule.now.certain and not rule.then.certain]
    return tuple(sorted({*quiet, *newly}))


def _healthy(fleet: Fleet, node: str) -> dict[str, float]:
    """The GPUs that a person called healthy: the node's agent looks at them anew."""
    at = fleet.ledger.healthy_at
    if not at:
        return {}
    found = (gpu.identity.uuid for gpu in fleet.gpus_at(node))
    return {uuid: at[Subject(gpu=uuid)] for uuid in found if Subject(gpu=uuid) in at}


def _holds(fleet: Fleet, node: str) -> tuple[HoldSpec, ...]:
    held = fleet.ledger.marked["gpu"]
    uuids = (gpu.identity.uuid for gpu in fleet.gpus_at(node)) if held else ()
    subjects = [Subject(node=node), *(Subject(gpu=uuid) for uuid in uuids if uuid in held)]
    found = [
        HoldSpec(id=hold.id, gpu=hold.subject.gpu, owner=hold.owner, reason=hold.reason)
        for subject in subjects
        for hold in fleet.ledger.standing(subject)
        if not is_fence(hold)
    ]
    return tuple(sorted(found, key=lambda hold: hold.id))


def _is_on(fleet: Fleet, gpu: str | None, node: str) -> bool:
    return gpu in fleet.gpus and fleet.gpus[gpu].node == node


def _replicas(fleet: Fleet, node: str) -> tuple[ReplicaSpec, ...]:
    here = sorted(fleet.roster.at(node), key=lambda replica: replica.id)
    return tuple(_spec(fleet, replica, node) for replica in here if not replica.observed)


def _spec(fleet: Fleet, replica: Replica, node: str) -> ReplicaSpec:
    deployment = fleet.deployments.get(replica.deployment) or Deployment(name=replica.deployment)
    stage = fleet.life(replica)
    if stage is Life.DRAIN and node != replica.node:
        stage = Life.STOP if _has_left(fleet, replica) else Life.RUN
    said = fleet.ledger.of_subject(replica.subject, SAID_BY[stage])
    return ReplicaSpec(
        replica=replica.id,
        deployment=replica.deployment,
        members=_members(replica),
        model=deployment.model or deployment.name,
        engine=deployment.engine,
        phase=PHASES[stage],
        token=said[-1].token if said else "",
        prestop_s=deployment.prestop_s,
        drain_s=deployment.drain_s,
        kill_s=deployment.kill_s,
        options=deployment.options,
        leader=_address(fleet, replica.node) if replica.is_group else "",
        leader_port=port_of(replica.id) if replica.is_group else 0,
    )


def _has_left(fleet: Fleet, replica: Replica) -> bool:
    """Whether the leader of a group that is drained runs no more."""
    leads = replica.part(replica.node)
    return fleet.node(replica.node).has_told if leads is None else has_ended(leads)


def _address(fleet: Fleet, node: str) -> str:
    """Where others reach a node: the host of its agent's own address, else its name."""
    facts = fleet.node(node).facts
    return (urlsplit(facts.address).hostname if facts is not None else None) or node


def _members(replica: Replica) -> tuple[Member, ...]:
    """As its agent reports them, else in the order of its placement."""
    if replica.is_group:
        pairs = zip(replica.places, replica.gpus, strict=True)
        return tuple(Member(node=node, gpu=gpu, rank=rank) for rank, (node, gpu) in enumerate(pairs))
    if replica.status is not None and replica.status.members:
        return replica.status.members
    return tuple(Member(node=replica.node, gpu=gpu, rank=rank) for rank, gpu in enumerate(replica.gpus))


def _orders(fleet: Fleet, node: str) -> tuple[Order, ...]:
    started = [fleet.ledger.actions[key] for key in fleet.ledger.started]
    found = [
        _order(action)
        for action in started
        if action.of in ON_THE_NODE and (action.subject.node == node or _is_on(fleet, action.subject.gpu, node))
    ]
    restarts = [a for a in started if a.of is ActionKind.RESTART_REPLICA and a.state is ActionState.ORDERED]
    for action in restarts:
        replica = fleet.roster.find(action.subject.replica)
        if replica is not None and replica.node == node and not replica.is_group:
            found.append(_order(action))
    found += site_units.orders(fleet, node)
    return tuple(sorted(found, key=lambda order: order.id))


def _order(action: ActionLine) -> Order:
    return Order(
        id=action.id,
        of=action.of,
        token=action.token,
        ttl_s=action.ttl_s or 0.0,
        gpu=action.subject.gpu,
        replica=action.subject.replica,
        gpus=tuple(subject.gpu for subject in action.disrupts if subject.gpu is not None),
        attempt=action.attempt,
    )
