"""GPU work that is no server: training, notebooks, and engines that may not be asked. One owner's is one.

It is told as an observed replica that serves nobody: it keeps its GPUs from other work, stands in the disruption set
of a repair with its owner's name, and is never signalled. Of a unit, a container, a pod or a job its name is theirs; of
a plain process its program and session.
"""

import re
from collections.abc import Sequence

import msgspec

from vocab.messages import ReplicaStatus
from vocab.observations import Member, Owner, ReplicaSeen

MOST_NAME = 64  # of a program: its words are a stranger's


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """Processes of one owner, and the GPUs that they hold. ``session`` tells plain processes apart."""

    owner: Owner
    session: int
    gpus: tuple[str, ...]
    pids: tuple[int, ...]

    def name(self, node: str) -> str:
        """``train.service@node-1``; of a plain process ``python3:4711@node-1``."""
        safe = re.sub(r"[^A-Za-z0-9._@-]", "_", self.owner.name)[:MOST_NAME]
        return f"{safe}:{self.session}@{node}" if self.owner.kind == "process" else f"{safe}@{node}"

    def members(self, node: str) -> tuple[Member, ...]:
        """The GPUs, in the order of their indices."""
        return tuple(Member(node=node, gpu=gpu, rank=rank) for rank, gpu in enumerate(self.gpus))

    def status(self, node: str) -> ReplicaStatus:
        """As the controller is told: it runs, and that is all that is known."""
        return ReplicaStatus(
            replica=self.name(node),
            deployment="",
            members=self.members(node),
            phase="ready",
            ready=True,
            admitting=True,
            pid=self.pids[0],
            observed=True,
            owner=self.owner,
            serves=False,
        )

    def seen(self, node: str, at: float, phase: str = "ready") -> ReplicaSeen:
        """As the recording gets it; ``stopped`` once it holds no GPU any more."""
        return ReplicaSeen(
            at=at,
            node=node,
            replica=self.name(node),
            members=self.members(node),
            pids=self.pids,
            phase=phase,
            observed=True,
            owner=self.owner,
            serves=False,
            ready=phase == "ready",
        )


def by_owner(pieces: Sequence[Work], node: str) -> dict[str, Work]:
    """By name, those of one owner together."""
    found: dict[str, Work] = {}
    for piece in pieces:
        name = piece.name(node)
        known = found.get(name, piece)
        found[name] = msgspec.structs.replace(
            known,
            gpus=tuple(dict.fromkeys((*known.gpus, *piece.gpus))),
            pids=tuple(dict.fromkeys((*known.pids, *piece.pids))),
        )
    return found
