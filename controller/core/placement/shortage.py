"""Shortage: in words, why a deployment has fewer ready replicas than it wants, and why no GPU takes one more."""

from collections import Counter

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.nodes import Gpu
from controller.core.fleet.stimuli import Deployment
from controller.core.placement.placement import is_placeable
from vocab.lines import ActionLine
from vocab.states import ActionKind, ActionState, Health, NodeState


def no_room(fleet: Fleet, deployment: Deployment, now: float, seen: dict[str, str] | None = None) -> str:
    """Why no GPU takes a replica, with how many stand in which way; of a pinned deployment its own GPUs alone.

    It looks at every GPU; ``seen`` keeps what was found for the next question at the same moment.
    """
    wanted, pinned = deployment.gpus_per_replica, deployment.gpus
    gpus = [gpu for uuid, gpu in fleet.gpus.items() if not pinned or uuid in pinned]
    largest = max(Counter(gpu.node for gpu in gpus).values(), default=0)
    if largest < wanted:
        return "no node has a GPU for it" if wanted == 1 else f"no node has {wanted} GPUs for it"
    seen = {} if seen is None else seen
    for gpu in gpus:
        if gpu.identity.uuid not in seen:
            seen[gpu.identity.uuid] = _obstacle(fleet, gpu, now)
    found = Counter(seen[gpu.identity.uuid] for gpu in gpus)
    told = ", ".join(f"{found[word]} {word}" for word in WORDS if found[word])
    kept = fleet.free.kept() if found["free"] else 0
    told += f" ({kept} kept as spares)" * bool(kept)
    return f"{'no GPU is free' if wanted == 1 else f'no node has {wanted} GPUs free'}: {told}"


# what keeps work off a GPU, first match
WORDS = ("lost", "held", "failed", "booting", "unknown", "occupied", "blocked", "free")


def _obstacle(fleet: Fleet, gpu: Gpu, now: float) -> str:
    uuid = gpu.identity.uuid
    health = fleet.health(uuid)
    silent = not gpu.is_fresh(now) or fleet.node_state(gpu.node) != NodeState.LIVE
    found = (
        health is Health.LOST,
        bool(fleet.holds_on(uuid)),
        health is Health.FAILED,
        fleet.node(gpu.node).is_booting,
        silent or not gpu.answers,
        bool(fleet.roster.on(uuid)),
        not is_placeable(fleet, gpu, now),
        True,
    )
    return WORDS[found.index(True)]


def why_short(fleet: Fleet, deployment: Deployment, now: float, seen: dict[str, str]) -> str | None:
    """What the replicas that are not ready do or wait for; None if as many are ready as are wanted."""
    replicas = fleet.roster.of(deployment.name)
    if sum(replica.is_ready for replica in replicas) >= deployment.replicas:
        return None
    words = Counter(fleet.word_of(replica).value for replica in replicas if not replica.is_ready)
    told = [f"{count} {word}" for word, count in sorted(words.items())]
    waiting = waiting_starts(fleet, deployment.name)
    if waiting:
        said = waiting[0]
        told.append(f"{len(waiting)} to start: {said.why if said.budget else no_room(fleet, deployment, now, seen)}")
    if not told and deployment.managed_by != "corral":
        told.append(f"{deployment.managed_by} has started no more")
    return ", ".join(told) or "what runs on its nodes is not known yet"


def waiting_starts(fleet: Fleet, deployment: str) -> list[ActionLine]:
    """The starts of a deployment that wait, oldest first."""
    starts = [fleet.ledger.actions[key] for key in fleet.ledger.live_actions[ActionKind.START_REPLICA]]
    return [start for start in starts if start.deployment == deployment and start.state is ActionState.WAITING]
