"""Shortage: in words, why a deployment has fewer ready replicas than it wants, and why no GPU takes one more."""

from collections import Counter, defaultdict

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.nodes import Gpu
from controller.core.fleet.stimuli import Deployment
from controller.core.placement.islands import is_known, widest_free
from controller.core.placement.placement import REQUIRED, is_placeable
from controller.core.placement.stranded import is_stranded
from vocab.lines import ActionLine
from vocab.states import ActionKind, ActionState, Health


def no_room(fleet: Fleet, deployment: Deployment, now: float, seen: dict[str, str] | None = None) -> str:
    """Why no GPU takes a replica, with how many stand in which way; of a pinned deployment its own GPUs alone.

    It looks at every GPU; ``seen`` keeps what was found for the next question at the same moment.
    """
    wanted, pinned, nodes = deployment.gpus_per_node, deployment.gpus, deployment.nodes_per_replica
    gpus = [gpu for uuid, gpu in fleet.gpus.items() if not pinned or uuid in pinned]
    large = sum(count >= wanted for count in Counter(gpu.node for gpu in gpus).values())
    if large < nodes:
        return f"{_no_nodes(wanted, nodes)} for it" if wanted > 1 or nodes > 1 else "no node has a GPU for it"
    seen = {} if seen is None else seen
    for gpu in gpus:
        if gpu.identity.uuid not in seen:
            seen[gpu.identity.uuid] = _obstacle(fleet, gpu, now)
    found = Counter(seen[gpu.identity.uuid] for gpu in gpus)
    told = ", ".join(f"{found[word]} {word}" for word in WORDS if found[word])
    kept = fleet.free.kept() if found["free"] else 0
    told += f" ({kept} kept as spares)" * bool(kept)
    free = [gpu for gpu in gpus if seen[gpu.identity.uuid] == "free"]
    return f"{_least(fleet, deployment, free, kept)}: {told}"


def _no_nodes(wanted: int, nodes: int) -> str:
    each = f"{wanted} GPU{'s' * (wanted > 1)}"
    return f"no node has {each}" if nodes == 1 else f"no {nodes} nodes have {each} each"


def _least(fleet: Fleet, deployment: Deployment, free: list[Gpu], kept: int) -> str:
    """What there is not enough of: free GPUs, islands of them, or nodes of one driver version that have them."""
    wanted, nodes = deployment.gpus_per_node, deployment.nodes_per_replica
    at: dict[str, list[str]] = defaultdict(list)
    for gpu in free:
        at[gpu.node].append(gpu.identity.uuid)
    rooms = [node for node, uuids in at.items() if len(uuids) >= wanted]
    if len(rooms) < nodes:
        return "no GPU is free" if wanted == nodes == 1 else f"{_no_nodes(wanted, nodes)} free"
    if deployment.island == REQUIRED and wanted > 1:
        known = [uuid for node in rooms for uuid in at[node] if is_known(fleet, node, uuid)]
        if not known:
            return f"{len(free)} free GPUs, but their islands are not known"
        rooms = [node for node in rooms if widest_free(fleet, node, at[node]) >= wanted]
        if len(rooms) < nodes:
            on = f" on {nodes} nodes" * (nodes > 1)
            return f"{len(free)} free GPU{'s' * (len(free) > 1)}, but no island of {wanted}{on}"
    if nodes > 1 and not kept:
        facts = (fleet.node(node).facts for node in rooms)
        most = max(Counter(each.driver for each in facts if each is not None).values(), default=0)
        if most < nodes:
            return f"{len(rooms)} nodes have {wanted} GPUs free, but no {nodes} of one driver version"
    return "no GPU is free" if wanted == nodes == 1 else f"{_no_nodes(wanted, nodes)} free"


# what keeps work off a GPU, first match
WORDS = ("lost", "held", "failed", "booting", "unknown", "stranded", "occupied", "blocked", "free")


def _obstacle(fleet: Fleet, gpu: Gpu, now: float) -> str:
    uuid = gpu.identity.uuid
    health = fleet.health(uuid)
    found = (
        health is Health.LOST,
        bool(fleet.holds_on(uuid)),
        health is Health.FAILED,
        fleet.node(gpu.node).is_booting,
        not fleet.is_fresh(gpu, now) or not gpu.answers,
        is_stranded(fleet, uuid),
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
