"""Version drift: a node with another driver or VBIOS than most of its pool. A reason to look, never a hold.

Pools mix drivers for as long as an upgrade takes; what stays behind, or runs ahead, was forgotten. Fewer than three
nodes, or no majority, have no usual version. Nodes that are in no pool are one.
"""

from collections.abc import Iterator

from controller.core.faults import conditions
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.names import condition_id
from controller.core.fleet.versions import DRIVER
from vocab.lines import ConditionLine, Subject

CODE = "version_drift"


def judge(fleet: Fleet, now: float) -> Iterator[ConditionLine]:
    """Open or end the condition of the nodes whose versions have changed; of a whole pool when its usual ones have."""
    versions = fleet.versions
    changed = list(fleet.work.versions)
    for pool in dict.fromkeys(fleet.pool_of(node) for node in changed):
        usual = versions.usual(pool)
        same = versions.is_as_before(pool, usual)
        for name in changed if same else list(fleet.nodes):
            parts = versions.of(name) if fleet.pool_of(name) == pool else {}
            if DRIVER in parts:  # without a driver nothing that it says is certain
                drifts = any(version != usual.get(part, version) for part, version in parts.items())
                yield from _say(fleet, name, now, drifts=drifts)


def _say(fleet: Fleet, node: str, now: float, *, drifts: bool) -> Iterator[ConditionLine]:
    subject, row = Subject(node=node), fleet.row(CODE)
    key = fleet.ledger.open_conditions.get((subject, CODE, None))
    if drifts and key is None:
        nth = sum(line.code == CODE and line.subject == subject for line in fleet.ledger.conditions.values())
        yield ConditionLine(
            at=now,
            subject=subject,
            id=condition_id(f"{CODE}/{node}", nth),
            code=CODE,
            state="open",
            severity=row.severity,
            since=now,
            last_at=now,
            reasons=(CODE,),
            clears_on=row.clears_on,
        )
    elif not drifts and key is not None:
        yield conditions.end(fleet.ledger.conditions[key], now)
