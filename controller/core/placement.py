"""Placement: on which GPUs a replica starts. All its members are on one node; a tie is decided by a hash of ids.

A GPU takes work if it is fresh and answers, in service, not held, not failed or lost, without a replica, its node is
live and has booted, is nobody else's to give work to, and no condition blocks it (memory that nobody owns up to, a
driver that could start nothing).
Spread comes before density: a node with fewer replicas of the deployment first, then one with less room left over.
"""

from collections import Counter, defaultdict

from controller.core.fleet import Fleet
from controller.core.kinds import REPAIRS
from controller.core.names import spread
from controller.core.nodes import Gpu
from controller.core.stimuli import Deployment
from controller.core.workflow import phase_of
from vocab.lines import Subject, Target
from vocab.states import Health, NodeState, Phase


def is_placeable(fleet: Fleet, gpu: Gpu, now: float) -> bool:
    """Whether a GPU takes new work, were it empty."""
    uuid = gpu.identity.uuid
    return (
        gpu.is_fresh(now)
        and gpu.answers
        and fleet.node(gpu.node).was_heard
        and not fleet.node(gpu.node).is_booting
        and fleet.node_state(gpu.node) == NodeState.LIVE
        and not fleet.holds_on(uuid)
        and fleet.health(uuid) not in {Health.FAILED, Health.LOST}
        and phase_of(fleet, uuid, now) is Phase.IN_SERVICE
        and not fleet.is_blocked(uuid)
        and not fleet.managers.may_own(gpu.node)
        and not _is_in_repair(fleet, uuid)
    )


def is_free(fleet: Fleet, gpu: Gpu, now: float) -> bool:
    """Whether it is placeable and without a replica."""
    return not fleet.roster.on(gpu.identity.uuid) and is_placeable(fleet, gpu, now)


def _is_in_repair(fleet: Fleet, uuid: str) -> bool:
    """Whether a repair that was ordered for another GPU will take this one along."""
    subject = Subject(gpu=uuid)
    return any(subject in a.disrupts for a in fleet.ledger.live(*REPAIRS) if a.id in fleet.ledger.ordered_at)


def _free(fleet: Fleet, now: float) -> dict[str, Gpu]:
    """The free GPUs. Only those that were touched since the last look are asked about anew."""
    unsure, fleet.work.unsure = fleet.work.unsure, {}
    for uuid in unsure:
        gpu = fleet.gpus.get(uuid)
        if gpu is not None and is_free(fleet, gpu, now):
            fleet.free[uuid] = gpu
        else:
            fleet.free.pop(uuid, None)
    return {uuid: gpu for uuid, gpu in fleet.free.items() if gpu.is_fresh(now)}


def choose(
    fleet: Fleet, deployment: Deployment, replica: str, now: float, but: frozenset[str] = frozenset()
) -> Target | None:
    """Where the replica goes, on no node of ``but``; None if no node has room for all its members."""
    window_s = fleet.settings.limits.window_s
    burnt = {gpu for _, gpus in fleet.roster.failures(deployment.name, now - window_s) for gpu in gpus}
    free: dict[str, list[Gpu]] = defaultdict(list)
    for uuid, gpu in _free(fleet, now).items():
        if gpu.node not in but and (not deployment.gpus or uuid in deployment.gpus):
            free[gpu.node].append(gpu)
    wanted = deployment.gpus_per_replica
    roomy = [(node, gpus) for node, gpus in free.items() if len(gpus) >= wanted]
    if not roomy:
        return None
    there = Counter(other.node for other in fleet.roster.of(deployment.name))

    def rank(option: tuple[str, list[Gpu]]) -> tuple[object, ...]:
        node, gpus = option
        unburnt = sum(gpu.identity.uuid not in burnt for gpu in gpus)
        return unburnt < wanted, there[node], len(gpus), spread(replica, node)

    node, gpus = min(roomy, key=rank)
    best = sorted(gpus, key=lambda gpu: _rank_gpu(fleet, gpu, burnt))[:wanted]
    chosen = sorted(best, key=lambda gpu: gpu.identity.index)
    return Target(node=node, gpus=tuple(gpu.identity.uuid for gpu in chosen))


def _rank_gpu(fleet: Fleet, gpu: Gpu, burnt: set[str]) -> tuple[object, ...]:
    uuid = gpu.identity.uuid
    return uuid in burnt, fleet.health(uuid) is not Health.HEALTHY, gpu.identity.index, uuid
