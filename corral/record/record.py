"""A recording of a live node: the ring of its agent, after lines that say what the controller wanted.

The ring holds what the node saw. What it was to run, and at which level, stands only with the controller: without
one, a replay acts at level repair and knows no deployment. Lines of a node come in the order of its judge.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from vocab.errors import InputError
from vocab.observations import DeploymentSeen, FleetShape

POOL = "recorded"


class _Head(msgspec.Struct):
    """What the first line of a ring must have."""

    at: float
    node: str | None = None


def record(ring: bytes, fleet: dict[str, Any] | None) -> Iterator[bytes]:
    """The lines of the recording. ``fleet`` is the controller's view. Raises InputError for an empty ring."""
    lines = ring.splitlines(keepends=True)
    if not lines:
        raise InputError("the agent has kept no recording: set recording_limit_bytes above 0 in its configuration")
    try:
        head = msgspec.json.decode(lines[0], type=_Head)
    except msgspec.DecodeError as error:
        raise InputError(f"the agent's recording cannot be read: {error}") from error
    if fleet is not None:
        yield from (msgspec.json.encode(line) + b"\n" for line in _wanted(fleet, head))
    yield from lines


def _wanted(fleet: dict[str, Any], head: _Head) -> Iterator[FleetShape | DeploymentSeen]:
    levels = {node["node"]: node["level"] for node in fleet["nodes"]}
    if head.node in levels:
        yield FleetShape(at=head.at, pools={POOL: {"nodes": [head.node], "level": levels[head.node]}})
    for deployment in fleet["deployments"]:
        yield DeploymentSeen(
            at=head.at,
            deployment=deployment["name"],
            replicas=deployment["wanted"],
            gpus_per_replica=deployment["gpus_per_replica"],
            nodes_per_replica=deployment.get("nodes_per_replica", 1),
            min_ready=deployment["min_ready"],
            engine=deployment["engine"],
        )
