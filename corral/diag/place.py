"""Whose agent is asked: the one that is named, the node's by the controller's word, or this machine's."""

import os
from collections.abc import Sequence
from typing import Any

import msgspec

from corral.ask import AGENT, CONTROLLER, ask, find_gpu
from vocab.errors import InputError, Unreachable


class Place(msgspec.Struct, frozen=True):
    """The agent's address, and the UUIDs of the GPUs there (none: all)."""

    agent: str
    gpus: tuple[str, ...]


def place(address: str | None, names: Sequence[str]) -> Place:
    """Where to go. Raises InputError if the GPUs are not all on one node."""
    if address is not None:
        return Place(address, _on_agent(address, names))
    url = os.environ.get("CORRAL_URL", CONTROLLER)
    if not names:
        return Place(_only_agent(url) or AGENT, ())
    try:
        gpus = [find_gpu(url, name) for name in names]
        nodes = ask(url, "GET", "/api/v1/fleet")["nodes"]
    except Unreachable:
        return Place(AGENT, _on_agent(AGENT, names))  # the controller may be down: the node itself knows its GPUs
    homes = {str(node["node"]) for node in nodes for gpu in node["gpus"] if gpu["uuid"] in gpus}
    if len(homes) != 1:
        raise InputError(f"these GPUs are on several nodes ({', '.join(sorted(homes))}): check one node at a time")
    address = next((node["address"] for node in ask(url, "GET", "/api/v1/nodes") if node["node"] in homes), None)
    if not address:
        raise InputError(f"nobody knows the address of {homes.pop()}'s agent: give it with --agent")
    return Place(str(address), tuple(dict.fromkeys(gpus)))


def _only_agent(url: str) -> str | None:
    """Of a fleet of one node; with more of them, or no controller, this machine's own is meant."""
    try:
        nodes = ask(url, "GET", "/api/v1/nodes")
    except Unreachable:
        return None
    return str(nodes[0]["address"]) if len(nodes) == 1 and nodes[0].get("address") else None


def _on_agent(address: str, names: Sequence[str]) -> tuple[str, ...]:
    """The node's GPUs by these names: an index, or a part of the UUID that is the only one."""
    if not names:
        return ()
    known: list[dict[str, Any]] = ask(address, "GET", "/api/v1/node")["gpus"]
    return tuple(dict.fromkeys(_named(name, known) for name in names))


def _named(name: str, known: list[dict[str, Any]]) -> str:
    if name.isdecimal():
        found = [gpu["gpu"] for gpu in known if gpu["index"] == int(name)]
    else:
        found = [gpu["gpu"] for gpu in known if name.lower() in gpu["gpu"].lower()]
    if len(found) != 1:
        raise InputError(f"{name!r} names {len(found)} GPUs of this node; give an index or a part of a UUID")
    return str(found[0])
