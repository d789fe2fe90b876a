"""Liveness: nodes that fall silent, are lost, come back. Silence alone never holds, drains or moves anything."""

from collections.abc import Iterator

from controller.core import holds
from controller.core.fleet import Fleet
from controller.core.nodes import Node
from vocab.lines import HoldLine, StateLine, Subject
from vocab.states import NodeState


def judge(fleet: Fleet, now: float) -> Iterator[StateLine | HoldLine]:
    """The nodes whose word has changed. One that comes back from being lost is held."""
    for node in [fleet.nodes[name] for name in fleet.work.nodes if name in fleet.nodes]:
        subject = Subject(node=node.name)
        before = fleet.ledger.words.get(subject)
        to = _state(node, before, now)
        if to is None or to == before:
            continue
        yield StateLine(at=now, subject=subject, from_=before, to=to, why=_why(node, to, now))
        for replica in fleet.roster.at(node.name):
            fleet.touch(replica.subject)
        if before == NodeState.LOST and to == NodeState.LIVE and not _is_held(fleet, subject):
            yield holds.for_return(fleet, node.name, now)


def _state(node: Node, before: str | None, now: float) -> NodeState | None:
    """Lost stays lost until the node reports or somebody reaches it."""
    state = node.state(now)
    if state is NodeState.UNKNOWN and before == NodeState.LOST:
        seen = any(ok for ok, _ in node.observers.values())
        return NodeState.UNKNOWN if seen else NodeState.LOST
    return state


def _is_held(fleet: Fleet, subject: Subject) -> bool:
    return any(holds.RETURNED in hold.reason for hold in fleet.ledger.standing(subject))


def _why(node: Node, to: NodeState, now: float) -> str:
    if to is NodeState.LIVE:
        return "it reports"
    silent = f"no report for {now - (node.reported_at or now):.0f} s"
    if to is NodeState.UNKNOWN:
        return silent
    return f"{silent}, and {', '.join(sorted(by for by, (ok, _) in node.observers.items() if not ok))} cannot reach it"
