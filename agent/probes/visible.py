"""What a replica may see (CUDA_VISIBLE_DEVICES), read by UUID against the inventory.

A process uses one MIG instance, whatever else is listed; a bare index of a partitioned GPU names no instance; an
instance that is not there is a fault of the replica's configuration, not a GPU less. Set and empty wants no GPU.
"""

from collections.abc import Mapping, Sequence

import msgspec

from agent.probes.figures import node_finding
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from vocab.events import Recovery, Scope, Severity
from vocab.observations import AnyObservation, NodeSeen, ReplicaSeen

CODE = "replica_wrong_gpu"
MIG = "MIG-"
INDEX_DIGITS = 4  # no node has ten thousand GPUs


class Wish(msgspec.Struct, frozen=True):
    """What is wrong with a list of devices, and how bad; ``instances``: those that may be chosen."""

    text: str
    severity: Severity
    instances: tuple[str, ...] = ()


def index_of(word: str) -> int | None:
    """The index that a word of the list is; None for a UUID, and for what no index can be."""
    return int(word) if word.isdecimal() and len(word) <= INDEX_DIGITS else None


def judge(visible: str, instances: Mapping[str, Sequence[str]], indices: Mapping[int, str]) -> Wish | None:
    """What is wrong with ``visible``. ``instances``: the MIG instances of each GPU; ``indices``: GPU by index."""
    words = [word.strip() for word in visible.split(",") if word.strip()]
    migs = [word for word in words if word.startswith(MIG)]
    there = [uuid for each in instances.values() for uuid in each]
    absent = [word for word in migs if not any(uuid.startswith(word) for uuid in there)]
    if absent and instances:
        return Wish(f"MIG instance {', '.join(absent)} is missing", Severity.ERROR, tuple(there))
    for word in words:
        index = index_of(word)
        gpu = word if index is None else indices.get(index)
        choice = tuple(instances.get(gpu or "", ()))
        if choice:
            return Wish(f"{word} is a GPU in MIG mode: name one of {', '.join(choice)}", Severity.ERROR, choice)
    if len(migs) > 1:
        return Wish(f"a process uses one MIG instance: {migs[0]} is used, the others are not", Severity.WARNING)
    return None


class VisibleProbe(msgspec.Struct):
    """Reads the list of each replica once a life, and again when the inventory changes."""

    lists: dict[str, str] = {}
    said: dict[str, str] = {}
    turn: int = 0

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take a replica in, or an inventory."""
        match observation:
            case ReplicaSeen():
                name = observation.replica
                if observation.exit is not None or observation.phase in {"starting", "stopped"}:
                    self.lists.pop(name, None)
                if observation.visible is not None:
                    self.lists[name] = observation.visible
                return self._judge(name, observation.at, scene)
            case NodeSeen():
                return [v for name in list(self.lists) for v in self._judge(name, observation.at, scene)]
        return ()

    def _judge(self, name: str, at: float, scene: Scene) -> Sequence[Verdict]:
        visible = self.lists.get(name)
        instances = {gpu.uuid: [str(one["uuid"]) for one in gpu.mig if one.get("uuid")] for gpu in scene.gpus.values()}
        indices = {gpu.index: gpu.uuid for gpu in scene.gpus.values()}
        wish = None if visible is None or not scene.gpus else judge(visible, instances, indices)
        if wish is None:
            return (Clear(code=CODE, at=at, name=name),) if self.said.pop(name, None) else ()
        if self.said.get(name) == wish.text:
            return ()
        self.said[name] = wish.text
        self.turn += 1
        found = node_finding(
            CODE,
            at,
            wish.text,
            scope=Scope.REPLICA,
            severity=wish.severity,
            recovery=Recovery.INVESTIGATE,  # it was configured so: a restart would see the same
            first=(name, self.turn),
            fields={"replica": name, "visible": visible, "instances": list(wish.instances)},
        )
        return (found,)
