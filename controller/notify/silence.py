"""What is not told while people are at work on a node: everything about that node but the maintenance itself. Pure."""

from collections.abc import Iterable

from controller.core.fleet.views import View
from controller.core.policy.pause import is_maintenance
from vocab.lines import AnyLine, HoldLine


def maintained(view: View) -> dict[str, HoldLine]:
    """The holds of the maintenances under way, by node."""
    return {node.node: hold for node in view.nodes for hold in _holds(node.holds)}


def _holds(holds: Iterable[HoldLine]) -> list[HoldLine]:
    return list(filter(is_maintenance, holds))


def is_silent(view: View, line: AnyLine) -> bool:
    """Whether the line is about a node that is maintained now, its GPUs or its replicas."""
    if isinstance(line, HoldLine) and is_maintenance(line):
        return False
    subject = line.subject
    return any(
        subject.node == node.node
        or any(subject.gpu == gpu.uuid or (subject.replica and subject.replica == gpu.replica) for gpu in node.gpus)
        for node in view.nodes
        if _holds(node.holds)
    )
