"""How near GPUs of one node are: in one NVLink island, and there on one NUMA node. What is not known is no distance."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from controller.core.fleet.nodes import Gpu
from vocab.observations import GpuIdentity

Apart = tuple[bool, bool]  # over islands, over NUMA nodes; to compare
Wide = tuple[int, int]  # GPUs of the largest island, and of the largest part of one on one NUMA node


def nearest(gpus: Sequence[Gpu], wanted: int, islands: Sequence[Sequence[str]]) -> tuple[Apart, list[list[Gpu]]]:
    """How far apart the nearest ``wanted`` of these are, and the groups of which each holds so many that near."""
    if wanted == 1:
        return (False, False), [list(gpus)]
    island = {uuid: number for number, uuids in enumerate(islands) for uuid in uuids}
    over_numa: dict[object, list[Gpu]] = defaultdict(list)
    over_none: dict[object, list[Gpu]] = defaultdict(list)
    for gpu in gpus:
        over_numa[island.get(gpu.identity.uuid)].append(gpu)
        over_none[island.get(gpu.identity.uuid), gpu.identity.numa].append(gpu)
    for apart, groups in (((False, False), over_none), ((False, True), over_numa)):
        found = [group for group in groups.values() if len(group) >= wanted]
        if found:
            return apart, found
    return (True, True), [list(gpus)]


def widest(gpus: Sequence[GpuIdentity], islands: Sequence[Sequence[str]]) -> Wide:
    """How many GPUs of a whole node are near each other at most."""
    island = {uuid: number for number, uuids in enumerate(islands) for uuid in uuids}
    by_island = Counter(island.get(gpu.uuid) for gpu in gpus)
    by_numa = Counter((island.get(gpu.uuid), gpu.numa) for gpu in gpus)
    return max(by_island.values(), default=0), max(by_numa.values(), default=0)
