"""The series of each node and GPU as text. A node's are written anew only when they say something else.

With 12,500 nodes they are more than all others together, and a scrape would take seconds to collect them.
"""

from collections.abc import Iterable, Mapping

from controller.core.fleet.views import NodeView

Told = tuple[bool, str, tuple[tuple[str, str], ...]]  # virtual, level, and each GPU with its state


def escaped(value: str) -> str:
    """A label's value as both formats want it."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


class NodeSeries:
    """What the series of each node said last."""

    def __init__(self) -> None:
        self._written: dict[str, tuple[Told, bytes, bytes]] = {}

    def of(self, nodes: Iterable[NodeView]) -> tuple[bytes, bytes]:
        """Those of ``corral_gpu_state`` and of ``corral_node_info``."""
        before, self._written = self._written, {}
        for node in nodes:
            told = (node.virtual, node.level, tuple((gpu.uuid, gpu.state) for gpu in node.gpus))
            known = before.get(node.node)
            if known is None or known[0] != told:
                known = (told, _gpu_states(node), _node_info(node))
            self._written[node.node] = known
        written = self._written.values()
        return b"".join(gpus for _, gpus, _ in written), b"".join(info for _, _, info in written)


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


def report_ages(ages_s: Mapping[str, float]) -> bytes:
    """Those of ``corral_node_report_age_seconds``."""
    found = (f'corral_node_report_age_seconds{{node="{escaped(node)}"}} {age:.3f}\n' for node, age in ages_s.items())
    return "".join(found).encode()
