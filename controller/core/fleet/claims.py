"""Claims: GPUs that a node lists and another one has. The last to list a GPU does not get it for that.

Whose a GPU is follows from inventories and from the open conditions of ``CODE``: the claim of a node on which one
stands is refused. Both are on disk, so the order in which nodes are recalled after a start decides nothing.
"""

from collections import defaultdict
from collections.abc import Mapping

from vocab.observations import GpuIdentity

CODE = "gpu_claimed_twice"
_DEVICE = "gpu:"


def device_of(uuid: str) -> str:
    """What the condition of a claim is about, beside its node."""
    return f"{_DEVICE}{uuid}"


def uuid_of(device: str | None) -> str:
    """The GPU that such a condition names."""
    return (device or "").removeprefix(_DEVICE)


class Claims:
    """Who lists what is not theirs. The fleet fills it."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, GpuIdentity]] = {}  # GPU -> who claims it, and as what
        self._by: dict[str, dict[str, None]] = defaultdict(dict)  # node -> the GPUs that it claims
        self.moved: dict[str, None] = {}  # nodes that have won or lost a GPU, not stored yet

    def __bool__(self) -> bool:
        return bool(self._of)

    def put(self, node: str, claimed: Mapping[str, GpuIdentity]) -> None:
        """These are what a node claims now."""
        for uuid in [uuid for uuid in self._by.get(node, ()) if uuid not in claimed]:
            self.drop(uuid, node)
        for uuid, identity in claimed.items():
            self.add(uuid, node, identity)

    def add(self, uuid: str, node: str, identity: GpuIdentity) -> None:
        """It claims this one, too."""
        self._of.setdefault(uuid, {})[node] = identity
        self._by[node][uuid] = None

    def drop(self, uuid: str, node: str) -> None:
        """It does not, or the GPU is its own now."""
        claimants = self._of.get(uuid, {})
        if claimants.pop(node, None) is not None and not claimants:
            del self._of[uuid]
        self._by[node].pop(uuid, None)

    def contested(self) -> list[str]:
        """The GPUs that somebody claims."""
        return list(self._of)

    def of(self, uuid: str) -> dict[str, GpuIdentity]:
        """Who claims a GPU, and as what."""
        return self._of.get(uuid, {})
