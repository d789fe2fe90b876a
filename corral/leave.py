"""By which command a person allows a repair that waits, and whether it takes --force. Pure: the fleet's answer in.

The controller decides when it is asked; this says beforehand what it will say as things are.
"""

from collections.abc import Mapping
from typing import Any

from vocab.states import REPAIRS

SERVING = frozenset({"ready", "degraded"})


def allowed_by(action: Mapping[str, Any], fleet: Mapping[str, Any]) -> str | None:
    """The command, with why it needs force where it does; None where no approval helps."""
    if action["of"] not in REPAIRS or "a person must do it" in action["why"] or action.get("budget") is not None:
        return None
    under = _under_floor(action, fleet)
    force = f" --force (without it refused: it would leave {under})" if under is not None else ""
    return f"corral approve {action['id']}{force}"


def _under_floor(action: Mapping[str, Any], fleet: Mapping[str, Any]) -> str | None:
    """The first deployment that would have too few replicas, in words."""
    struck = [action.get("subject") or {}, *action.get("disrupts", ())]
    names = {name for subject in struck for name in subject.values() if name}
    replicas = [each for each in fleet.get("replicas", ()) if each.get("deployment") and not each.get("observed")]
    gone = [
        each for each in replicas
        if each["replica"] in names or names & {each["node"], *each.get("nodes", ()), *each["gpus"]}
    ]  # fmt: skip
    going = {each["replica"] for each in gone}
    hit = {each["deployment"] for each in gone if each["state"] in SERVING}
    for deployment in fleet["deployments"]:
        name = deployment["name"]
        left = sum(each["deployment"] == name and each["ready"] and each["replica"] not in going for each in replicas)
        if name in hit and left < deployment["min_ready"]:
            return f"{left} of {deployment['min_ready']} replicas of {name} that serve"
    return None
