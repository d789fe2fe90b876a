"""Which of the wanted replicas may be acted on now. Pure.

After a start, hold first: a replica is started only once its GPUs were read with success by this process
and no hold stands on them. While the node's PAUSE file stands nothing that lives is drained or stopped.
"""

from collections.abc import Iterable, Sequence

import msgspec

from vocab.messages import HoldSpec, ReplicaSpec


class Sighted(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate looks at. ``known``: replicas that live or were let through before."""

    node: str
    known: frozenset[str]
    living: frozenset[str]
    proven: frozenset[str]
    paused: bool


def admitted(
    wanted: Sequence[ReplicaSpec], before: Iterable[ReplicaSpec], holds: Sequence[HoldSpec], sighted: Sighted
) -> tuple[ReplicaSpec, ...]:
    """The specs to converge to: ``wanted`` without those that must wait, and what a pause keeps of ``before``."""
    passed = [
        spec for spec in wanted if spec.phase != "run" or spec.replica in sighted.known or _may(spec, holds, sighted)
    ]
    if not sighted.paused:
        return tuple(passed)
    kept = {spec.replica: spec for spec in before if spec.phase == "run" and spec.replica in sighted.living}
    rest = [spec for spec in passed if spec.replica not in kept or spec.phase == "run"]
    replaced = {spec.replica for spec in rest}
    return (*rest, *(spec for replica, spec in kept.items() if replica not in replaced))


def _may(spec: ReplicaSpec, holds: Sequence[HoldSpec], sighted: Sighted) -> bool:
    mine = {member.gpu for member in spec.members if member.node == sighted.node}
    held = any(hold.gpu is None or hold.gpu in mine for hold in holds)
    return mine <= sighted.proven and not held
