"""Deployments: as many replicas as are wanted, on GPUs that can carry them.

A replica that will go (its GPU is held for a fault, its node is lost, a person drains it) does not count,
so its replacement starts while it still runs. A start is never harmful: no level, pause or cordon budget
forbids it; only failed starts make it wait, with the window for a back-off.
"""

from collections.abc import Iterator

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.replicas import Replica, is_leaving, is_on_bad_gpu
from controller.core.fleet.stimuli import Deployment
from controller.core.placement import starts
from controller.core.placement.shortage import waiting_starts
from controller.core.replicas import restart
from controller.core.replicas.retire import ASKED, drain_surplus
from vocab.lines import ActionLine
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
        missing = fleet.deployments[name].replicas - len(staying(fleet, name))
        yield from starts.missing(fleet, fleet.deployments[name], max(0, missing), now)
        yield from _drain_surplus(fleet, fleet.deployments[name], now)
        if len(staying(fleet, name)) != fleet.deployments[name].replicas or waiting_starts(fleet, name):
            fleet.work.keep_deployment(name)


def staying(fleet: Fleet, deployment: str) -> list[Replica]:
    """The replicas that count: alive, not about to go, and not on a GPU that is held for a fault."""
    going, doubtful = fleet.work.going, fleet.work.doubtful
    for name in doubtful:
        replica = fleet.roster.living.get(name)
        (going.discard if replica is None or _stays(fleet, replica) else going.add)(name)
    doubtful.clear()
    return [replica for replica in fleet.roster.of(deployment) if replica.id not in going]


def _stays(fleet: Fleet, replica: Replica) -> bool:
    if replica.is_dead and not restart.is_under_way(fleet, replica):
        return False
    return not is_leaving(fleet.ledger, replica) and not is_on_bad_gpu(fleet.ledger, replica)


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
