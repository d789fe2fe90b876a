"""What the API says, in the words of the command line: a person who typed a command has no use for a path."""

import re
from collections.abc import Mapping
from typing import Any

# What shows the things of a path, and by which command they are ordered; the longest path that fits counts.
COMMANDS = {
    "gpus": "corral status",
    "nodes": "corral status",
    "fleet": "corral status",
    "replicas": "corral status",
    "deployments": "corral status",
    "holds": "corral status",
    "maintenances": "corral maintain list",
    "actions": "corral status",
    "incidents": "corral incident list --all",
    "events": "corral events",
    "cards": "corral card",
    "lemons": "corral lemons",
    "versions": "corral versions",
    "bundles": "corral bundle --list",
    "tokens": "corral token list",
    "policy": "corral policy status",
    "policy/adoptions": "corral policy history",
}
ORDERS = {
    "holds": "corral hold",
    "drains": "corral drain",
    "releases": "corral release",
    "approvals": "corral approve",
    "pause": "corral pause",
    "resume": "corral resume",
    "maintenances": "corral maintain",
    "undo": "corral undo",
    "discards": "corral discard",
    "tokens": "corral token",
    "policy/adoptions": "corral policy adopt",
    "policy/reverts": "corral policy revert",
}
_ADDRESS = re.compile(r"(https?://[^/\s]+)/api/v1/[^\s:;,]*")
_PATH = re.compile(r"(?:(GET|POST|DELETE|PUT) )?/api/v1/([a-z/_-]+)(?:[?{][^\s;,]*)?")


def in_commands(text: str) -> str:
    """The text with commands in place of paths, and addresses without them."""
    return _PATH.sub(_command, _ADDRESS.sub(r"\1", text))


def _command(found: re.Match[str]) -> str:
    known = ORDERS if found[1] not in {None, "GET"} else COMMANDS
    parts = found[2].strip("/").split("/")
    tries = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((f"`{known[each]}`" for each in tries if each in known), "the controller")


def readings_now(gpu: Mapping[str, Any]) -> Any:
    """What is read of a GPU, in the API's form; None if that is not so now: what it was last is history."""
    return gpu.get("readings") if gpu.get("fresh", True) else None


def places(fleet: Mapping[str, Any]) -> dict[str, str]:
    """NODE/INDEX of each GPU in the API's answer about the fleet, by UUID: what people call it."""
    return {gpu["uuid"]: f"{node['node']}/{gpu['index']}" for node in fleet["nodes"] for gpu in node.get("gpus", ())}
