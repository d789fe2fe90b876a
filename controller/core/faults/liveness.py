"""Liveness: nodes that fall silent, are lost, come back. Silence alone never holds, drains or moves anything.

*Unknown*: no report for three of its usual gaps. *Lost*: two others cannot reach it either. If all nodes of a failure
domain, or of the whole fleet, fell silent at once, then the way to them has broken, or we have: none of them is lost.
Nor is one that we boot ourselves, until that order's time is over: its silence is explained.
"""

from collections.abc import Generator, Iterator

from controller.core.faults import conditions
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.kinds import STARTED, WIDE
from controller.core.fleet.ledger import TOO_MUCH
from controller.core.fleet.nodes import Node
from controller.core.fleet.settings import AT_ONCE_S, OBSERVERS_FOR_LOST
from vocab.events import Event, Source, event_id, rfc3339
from vocab.lines import AnyLine, EventLine, NoteLine, StateLine, Subject
from vocab.states import NodeState

UNKNOWN, LOST = "node_unknown", "node_lost"
CODES = {NodeState.UNKNOWN: UNKNOWN, NodeState.LOST: LOST}


def judge(fleet: Fleet, now: float) -> Iterator[AnyLine]:
    """The nodes whose word has changed, and what stands on them for it."""
    for node in [fleet.nodes[name] for name in fleet.work.nodes if name in fleet.nodes]:
        before = fleet.ledger.words.get(Subject(node=node.name))
        if node.heard_at is None:
            continue
        to = yield from _state(fleet, node, before, now)
        if to != before:
            yield from _turn(fleet, node, before, to, now)


def _state(fleet: Fleet, node: Node, before: str | None, now: float) -> Generator[NoteLine, None, NodeState]:
    """Its word now (the generator's value). Lost stays lost until the node reports or somebody reaches it."""
    fleet.doubted.pop(node.name, None)
    if now < node.silent_at():
        if node.reported_at is None:
            return NodeState(before) if before is not None else NodeState.UNKNOWN
        return NodeState.LIVE
    if before == NodeState.LOST:
        return NodeState.UNKNOWN if node.is_reached() else NodeState.LOST
    if len(_witnesses(fleet, node)) < OBSERVERS_FOR_LOST or node.is_reached() or _boots_for_us(fleet, node):
        return NodeState.UNKNOWN
    silent = _silent_at_once(fleet, node, now)
    if silent is None:
        return NodeState.LOST
    fleet.doubted[node.name] = None
    note = NoteLine(at=now, subject=Subject(node=node.name), code=TOO_MUCH, text=silent)
    if (note.subject, note.code, note.text) not in fleet.ledger.notes:
        yield note
    return NodeState.UNKNOWN


def _witnesses(fleet: Fleet, node: Node) -> list[str]:
    """Who cannot reach it; a node that is silent itself is no witness."""
    return [by for by in node.unreached_by() if by not in fleet.nodes or fleet.node_state(by) == NodeState.LIVE]


def _boots_for_us(fleet: Fleet, node: Node) -> bool:
    """Whether a reboot or a power cycle of it was ordered and has not ended."""
    orders = fleet.ledger.live(*WIDE)
    return any(order.state in STARTED and order.subject.node == node.name for order in orders)


def _silent_at_once(fleet: Fleet, node: Node, now: float) -> str | None:
    """What makes us doubt: all nodes of a domain that report at all fell silent together, and there are several."""
    domains = [(f"domain {name}", names) for name, names in sorted(fleet.domains.items()) if node.name in names]
    for name, names in [*domains, ("the fleet", tuple(fleet.nodes))]:
        watched = [fleet.nodes[each] for each in names if each in fleet.nodes]
        heard = {each.name: each.heard_at for each in watched if each.heard_at is not None}
        if len(heard) < 2 or not all(fleet.nodes[each].is_overdue(now) for each in heard):
            continue
        if max(heard.values()) - min(heard.values()) <= AT_ONCE_S:
            since = rfc3339(max(heard.values()))
            return f"all {len(heard)} nodes of {name} fell silent at once after {since}: we doubt ourselves"
    return None


def _turn(fleet: Fleet, node: Node, before: str | None, to: NodeState, now: float) -> Iterator[AnyLine]:
    subject, why = Subject(node=node.name), _why(fleet, node, to, now)
    ended = [condition for condition in fleet.conditions_on(subject) if condition.code in CODES.values()]
    if to in CODES:
        yield _event(fleet, node, CODES[to], before, why, now)
    for condition in ended:
        yield conditions.end(condition, now)
    yield StateLine(at=now, subject=subject, from_=before, to=to, why=why)


def _event(fleet: Fleet, node: Node, code: str, before: str | None, why: str, now: float) -> EventLine:
    row, facts, stamp = fleet.row(code), node.facts, rfc3339(now)
    boot = facts.boot_id if facts is not None else None
    event = Event(
        id=event_id(boot, node.name, code, "", (node.heard_at, before)),
        at=stamp,
        node=node.name,
        boot_id=boot,
        code=code,
        severity=row.severity,
        recovery=row.recovery,
        scope=row.scope,
        source=Source.CORRAL,
        first_at=rfc3339(node.heard_at or now),
        last_at=stamp,
        text=why,
    )
    return EventLine(at=now, subject=Subject(node=node.name), event=fleet.weighed(event))


def _why(fleet: Fleet, node: Node, to: NodeState, now: float) -> str:
    if to is NodeState.LIVE:
        return "it reports"
    silent = f"no report for {now - (node.heard_at or now):.0f} s"
    return silent if to is NodeState.UNKNOWN else f"{silent}, and {', '.join(_witnesses(fleet, node))} cannot reach it"
