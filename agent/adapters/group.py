"""A node's share of a replica that lies on several nodes: its own members, and what they must know of the others.

One process a node. It is told which one it is, how many there are, and where they meet: what ``torchrun`` and the
engines call node rank, nodes, master address and master port, and LeaderWorkerSet worker index, size and leader.
"""

import msgspec

from vocab.errors import ConfigError
from vocab.messages import ReplicaSpec

RANK, WORLD_SIZE, LEADER, LEADER_PORT = (
    "CORRAL_RANK",
    "CORRAL_WORLD_SIZE",
    "CORRAL_LEADER",
    "CORRAL_LEADER_PORT",
)


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Which process of how many this is (0 leads), how many GPUs all have together, and where they meet."""

    rank: int
    nodes: int
    gpus: int
    leader: str
    port: int

    @property
    def leads(self) -> bool:
        """Whether it is the one that has a door."""
        return self.rank == 0

    @property
    def environment(self) -> dict[str, str]:
        """The same for its process."""
        return {
            RANK: str(self.rank),
            WORLD_SIZE: str(self.nodes),
            LEADER: self.leader,
            LEADER_PORT: str(self.port),
        }


def group_of(spec: ReplicaSpec, node: str) -> Group | None:
    """What a node's process of a replica is among the others; None if there are none."""
    nodes = spec.nodes
    if len(nodes) < 2 or node not in nodes:
        return None
    rank = nodes.index(node)
    return Group(rank=rank, nodes=len(nodes), gpus=len(spec.members), leader=spec.leader, port=spec.leader_port)


def share_of(spec: ReplicaSpec, node: str) -> ReplicaSpec:
    """The replica with the members of one node alone, if it is a group."""
    if len(spec.nodes) < 2:
        return spec
    return msgspec.structs.replace(spec, members=tuple(member for member in spec.members if member.node == node))


def refuse(group: Group | None, engine: str) -> None:
    """Raises ConfigError if an engine that runs on one node alone is to start as a part of a group."""
    if group is not None:
        raise ConfigError(
            f"engine: {engine} runs on one node, and this replica lies on {group.nodes}:"
            " set nodes_per_replica = 1, or take the engine vllm, sglang or command"
        )
