"""The series of each node and GPU as text. A node's are written anew only when they say something else.

With 12,500 nodes they are more than all others together, and a scrape would take seconds to collect them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from controller.core.fleet.views import NodeView, View
from vocab.lines import ConditionLine


class Told(msgspec.Struct, frozen=True):
    """What a scrape says of nodes and GPUs: two metrics as text, and how many GPUs and nodes are in each state."""

    gpu_states: bytes
    node_info: bytes
    gpus: Counter[str]
    nodes: Counter[str]


class _Node(msgspec.Struct):
    """One node as it was told last, and what was looked at for it."""

    view: NodeView
    states: list[tuple[str, str]]  # each GPU with its state
    gpu_states: bytes
    node_info: bytes


def escaped(value: str) -> str:
    """A label's value as both formats want it."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


class NodeSeries:
    """What the series of each node said last. Not for two threads at one time."""

    def __init__(self) -> None:
        self._written: dict[str, _Node] = {}
        self._gpus: Counter[str] = Counter()

    def of(self, nodes: Iterable[NodeView]) -> Told:
        """All of these, and no others from now on."""
        before, self._written = self._written, {}
        for view in nodes:
            self._written[view.node] = self._one(view, before.pop(view.node, None))
        for gone in before.values():
            self._gpus.subtract(state for _, state in gone.states)
        written = self._written.values()
        return Told(
            b"".join(each.gpu_states for each in written),
            b"".join(each.node_info for each in written),
            +self._gpus,
            Counter(each.view.state for each in written),
        )

    def _one(self, view: NodeView, known: _Node | None) -> _Node:
        if known is not None and known.view is view:
            return known
        states = [(gpu.uuid, gpu.state) for gpu in view.gpus]
        if known is not None and known.states == states:
            info = known.node_info if _same_info(known.view, view) else _node_info(view)
            return _Node(view, states, known.gpu_states, info)
        self._gpus.subtract(state for _, state in (known.states if known is not None else ()))
        self._gpus.update(state for _, state in states)
        return _Node(view, states, _gpu_states(view), _node_info(view))


def _same_info(one: NodeView, other: NodeView) -> bool:
    return (one.virtual, one.level) == (other.virtual, other.level)


def _gpu_states(node: NodeView) -> bytes:
    name = escaped(node.node)
    found = (
        f'corral_gpu_state{{node="{name}",gpu="{escaped(gpu.uuid)}",state="{escaped(gpu.state)}"}} 1.0\n'
        for gpu in node.gpus
    )
    return "".join(found).encode()


def _node_info(node: NodeView) -> bytes:
    virtual = str(node.virtual).lower()
    labels = f'node="{escaped(node.node)}",virtual="{virtual}",level="{escaped(node.level)}"'
    return f"corral_node_info{{{labels}}} 1.0\n".encode()


def by_node(metric: str, values: Mapping[str, float]) -> bytes:
    """A metric with a value for each node."""
    return "".join(f'{metric}{{node="{escaped(node)}"}} {value:.3f}\n' for node, value in values.items()).encode()


def opened(view: View) -> bytes:
    """Those of ``corral_condition_opened_timestamp_seconds``; of two with the same labels that of the older one."""
    places = _Places(view)
    since: dict[str, float] = {}
    for each in view.conditions:
        labels = places.labels(each)
        since[labels] = min(each.since, since.get(labels, each.since))
    found = (f"corral_condition_opened_timestamp_seconds{{{labels}}} {at:.3f}\n" for labels, at in since.items())
    return "".join(found).encode()


class _Places:
    """Where the subjects of conditions are. It looks through the fleet only if a condition asks for it."""

    def __init__(self, view: View) -> None:
        gpus = any(each.subject.gpu is not None for each in view.conditions)
        self._gpus = {gpu.uuid: node.node for node in view.nodes for gpu in node.gpus} if gpus else {}
        self._replicas = {each.replica: each for each in view.replicas}

    def labels(self, of: ConditionLine) -> str:
        about = of.subject
        replica = self._replicas.get(about.replica or "")
        named = {
            "code": of.code,
            "node": about.node or self._gpus.get(about.gpu or "") or (replica.node if replica is not None else None),
            "gpu": about.gpu,
            "replica": about.replica,
            "deployment": about.deployment or (replica.deployment if replica is not None else None),
            "device": of.device,
        }
        return ",".join(f'{name}="{escaped(value or "")}"' for name, value in named.items())
