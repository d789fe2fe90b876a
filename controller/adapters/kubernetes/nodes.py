"""A node object: whether our mark stands on it, who else is at work there, and patches that close and open it. Pure."""

from collections.abc import Iterable
from typing import Any

import msgspec

Body = dict[str, Any]

HOLD = "corral/hold"  # annotation: the hold that closed it, and why
HELD = "corral/held"  # taint, of a node or of a device
CONDITION = "CorralHeld"

# Who else repairs nodes, by the keys that they leave. A key that ends in * is a beginning.
REMEDIATORS: dict[str, str] = {
    "dgxc.nvidia.com/nvsentinel-state": "NVSentinel",
    "quarantineHealthEvent*": "NVSentinel",
    "k8saas.nvidia.com/cordon-by": "NVSentinel",
    "k8s.nvidia.com/cordon-by": "NVSentinel",
    "remediator.aks.microsoft.com/*": "Azure's node repair",
    "cloud.google.com/impending-node-termination": "Google's node repair",
    "aws-node-termination-handler/*": "the AWS node termination handler",
    "karpenter.sh/disrupted": "Karpenter",
    "karpenter.sh/disruption": "Karpenter",
    "ToBeDeletedByClusterAutoscaler": "the cluster autoscaler",
    "medik8s.io/*": "Medik8s",
    "node.kubernetes.io/out-of-service": "a person or a fencing tool",
}
OVER = frozenset({"", "false", "remediation-succeeded"})  # values under which such a key is only left behind


def metadata(node: Body, part: str) -> dict[str, str]:
    """Labels or annotations."""
    return node.get("metadata", {}).get(part) or {}


def taints(node: Body) -> list[Body]:
    """Its taints."""
    return node.get("spec", {}).get("taints") or []


def is_ours(node: Body) -> bool:
    """Whether our mark stands: uncordoned by a person it does not, whatever is left of it."""
    return HOLD in metadata(node, "annotations") and bool(node.get("spec", {}).get("unschedulable"))


def has_remains(node: Body) -> bool:
    """Whether anything of our mark is left on it."""
    return HOLD in metadata(node, "annotations") or any(taint.get("key") == HELD for taint in taints(node))


def other(node: Body, more: Iterable[str] = ()) -> str:
    """Who else is at work on it, in words; empty if nobody is."""
    known = REMEDIATORS | dict.fromkeys(more, "another remediator")
    found = {**metadata(node, "labels"), **metadata(node, "annotations")}
    for key, value in found.items():
        who = _who(known, key)
        if who is not None and value not in OVER:
            return f"{who} is at work on it ({key}={value[:40]})"
    for taint in taints(node):
        who = _who(known, taint.get("key", ""))
        if who is not None:
            return f"{who} is at work on it (taint {taint['key']})"
    if node.get("spec", {}).get("unschedulable") and not is_ours(node):
        return "cordoned in kubernetes by somebody else"
    return ""


def _who(known: dict[str, str], key: str) -> str | None:
    exact = known.get(key)
    begun = (who for begins, who in known.items() if begins.endswith("*") and key.startswith(begins[:-1]))
    return exact or next(begun, None)


def closing(node: Body, hold: str, why: str) -> Body:
    """The merge patch that cordons and taints it; refused by the server if the node has changed since."""
    kept = [taint for taint in taints(node) if taint.get("key") != HELD]
    return _patch(node, True, [*kept, {"key": HELD, "value": hold, "effect": "NoSchedule"}], _note(hold, why))


def opening(node: Body) -> Body:
    """The merge patch that takes our mark away; a cordon that somebody else set in the meantime stays."""
    kept = [taint for taint in taints(node) if taint.get("key") != HELD]
    return _patch(node, None if is_ours(node) else node.get("spec", {}).get("unschedulable"), kept, None)


def annotation(node: Body, hold: str | None, why: str) -> Body:
    """The merge patch that says on the node whose hold a device of it is under, or that there is none."""
    return {
        "metadata": {
            "resourceVersion": node["metadata"]["resourceVersion"],
            "annotations": {f"{HOLD}-devices": _note(hold, why) if hold else None},
        }
    }


def _patch(node: Body, unschedulable: bool | None, left: list[Body], note: str | None) -> Body:
    return {
        "metadata": {"resourceVersion": node["metadata"]["resourceVersion"], "annotations": {HOLD: note}},
        "spec": {"unschedulable": unschedulable, "taints": left or None},
    }


def _note(hold: str, why: str) -> str:
    return msgspec.json.encode({"by": "corral", "hold": hold, "why": why}).decode()


def condition(held: bool, why: str, at: str) -> Body:
    """The strategic patch of its status: a condition as node-problem-detector writes them, True while held."""
    return {
        "status": {
            "conditions": [
                {
                    "type": CONDITION,
                    "status": "True" if held else "False",
                    "reason": "GpuHeld" if held else "NothingHeld",
                    "message": why,
                    "lastTransitionTime": at,
                    "lastHeartbeatTime": at,
                }
            ]
        }
    }
