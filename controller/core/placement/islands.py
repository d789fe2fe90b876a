"""Islands: which GPUs of a node reach each other over NVLink now, and which nodes share one fabric.

By the facts of the node: what its board has, or, where GPUs name the fabric and the clique that they are registered in
(as on an NVL72), those of one clique. A GPU with a link that is down, or that its fabric has not taken in, is alone.
What a node does not tell is unknown: no distance where an island is preferred, and none where it is required.
"""

from collections import defaultdict

from controller.core.fleet.fleet import Fleet
from vocab.lines import Subject
from vocab.messages import NodeFacts

APART = frozenset({"nvlink_down", "fabric_incomplete", "fabric_unhealthy"})  # conditions of a GPU that is alone
Islands = tuple[tuple[str, ...], ...]


def islands_at(fleet: Fleet, node: str) -> Islands:
    """The islands of a node as they are now; GPUs of which nothing is known are in none."""
    facts = fleet.node(node).facts
    if facts is None:
        return ()
    alone = {gpu.identity.uuid for gpu in fleet.gpus_at(node) if is_apart(fleet, gpu.identity.uuid)}
    whole = by_fabric(facts) or facts.islands
    if not alone:
        return whole
    kept = (tuple(uuid for uuid in island if uuid not in alone) for island in whole)
    return (*(island for island in kept if island), *((uuid,) for uuid in sorted(alone)))


def is_apart(fleet: Fleet, gpu: str) -> bool:
    """Whether something keeps a GPU from the others of its island."""
    return any(condition.code in APART for condition in fleet.conditions_on(Subject(gpu=gpu)))


def by_fabric(facts: NodeFacts) -> Islands:
    """The GPUs of a node by the clique that they name; empty if none names any."""
    found: dict[str, list[str]] = defaultdict(list)
    for gpu in facts.gpus:
        if gpu.fabric is not None:
            found[gpu.fabric].append(gpu.uuid)
    return tuple(map(tuple, found.values()))


def fabrics_at(fleet: Fleet, node: str) -> list[str]:
    """The cliques that GPUs of a node are registered in."""
    facts = fleet.node(node).facts
    return list(dict.fromkeys(gpu.fabric for gpu in facts.gpus if gpu.fabric is not None)) if facts is not None else []


def widest_free(fleet: Fleet, node: str, gpus: list[str]) -> int:
    """How many of these GPUs of a node are in one island that is known."""
    return max((sum(gpu in island for gpu in gpus) for island in islands_at(fleet, node)), default=0)


def is_known(fleet: Fleet, node: str, gpu: str) -> bool:
    """Whether it is known which island a GPU is in."""
    return any(gpu in island for island in islands_at(fleet, node))
