"""A GPU that two nodes list: whose it is. A node speaks for itself, and must not take GPUs from another by a list.

Who has it keeps it while it is live and lists it; the other's claim is a condition of the claiming node, for a person
to look at, and holds nothing. It goes to a claimant that is live once its node lists it no longer (the card has moved)
or is silent (the node from which it was taken is off). A node that cannot read its GPUs, or that boots, gives none up.
"""

from collections.abc import Iterator

from controller.core.faults import conditions
from controller.core.fleet.claims import CODE, device_of, uuid_of
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.names import condition_id
from controller.core.fleet.nodes import Gpu
from vocab.events import Event, Source, event_id, rfc3339
from vocab.lines import AnyLine, ConditionLine, EventLine, Subject
from vocab.states import NodeState

_Key = tuple[Subject, str, str | None]


def judge(fleet: Fleet, now: float) -> Iterator[AnyLine]:
    """Refuse the claims that are new, grant those whose time has come, and end what nobody claims any more."""
    for subject, key in fleet.ledger.docket.conditions(CODE):
        condition = fleet.ledger.conditions[key]
        if subject.node is not None and not _still_claims(fleet, subject.node, uuid_of(condition.device)):
            yield conditions.end(condition, now)
    for uuid in fleet.inventory.claims.contested():
        yield from _decide(fleet, uuid, now)


def _still_claims(fleet: Fleet, node: str, uuid: str) -> bool:
    facts = fleet.node(node).facts
    gpu = fleet.gpus.get(uuid)
    if facts is None or (gpu is not None and gpu.node == node):
        return facts is None  # not heard of since the start
    return node in fleet.inventory.claims.of(uuid) or fleet.inventory.is_blind(node)


def _decide(fleet: Fleet, uuid: str, now: float) -> Iterator[AnyLine]:
    gpu = fleet.gpus.get(uuid)
    heir = None if gpu is not None and _stays(fleet, gpu, now) else _heir(fleet, uuid, now)
    losers = [node for node in fleet.inventory.claims.of(uuid) if node != heir]
    if heir is not None and gpu is not None and fleet.inventory.keeps(gpu):
        losers.append(gpu.node)
    for node in losers:
        if not fleet.inventory.is_refused(node, uuid):
            yield from _refuse(fleet, uuid, node, heir or (gpu.node if gpu is not None else "another node"), now)
    if heir is not None and (key := fleet.ledger.open_conditions.get(_key(heir, uuid))) is not None:
        yield conditions.end(fleet.ledger.conditions[key], now)


def _stays(fleet: Fleet, gpu: Gpu, now: float) -> bool:
    """Whether it is still its owner's. While we have just begun, or doubt ourselves, silence proves nothing."""
    if _is_silent(fleet, gpu.node, now) and gpu.node not in fleet.doubted and fleet.patience.is_settled(now):
        return False
    return fleet.inventory.keeps(gpu)


def _is_silent(fleet: Fleet, node: str, now: float) -> bool:
    return fleet.node_state(node) != NodeState.LIVE and fleet.node(node).told_at != now


def _heir(fleet: Fleet, uuid: str, now: float) -> str | None:
    """The claimant that has waited longest, of those that are there."""
    there = [
        node
        for node in fleet.inventory.claims.of(uuid)
        if fleet.node(node).was_heard and not _is_silent(fleet, node, now)
    ]
    return min(there, key=lambda node: (_since(fleet, uuid, node, now), node), default=None)


def _since(fleet: Fleet, uuid: str, node: str, now: float) -> float:
    key = fleet.ledger.open_conditions.get(_key(node, uuid))
    return now if key is None else fleet.ledger.conditions[key].since


def _key(node: str, uuid: str) -> _Key:
    return Subject(node=node), CODE, device_of(uuid)


def _refuse(fleet: Fleet, uuid: str, node: str, owner: str, now: float) -> Iterator[AnyLine]:
    row, facts, stamp, (subject, _, device) = fleet.row(CODE), fleet.node(node).facts, rfc3339(now), _key(node, uuid)
    boot = facts.boot_id if facts is not None else None
    known = fleet.ledger.conditions.values()
    nth = sum((line.code, line.subject, line.device) == (CODE, subject, device) for line in known)
    event = Event(
        id=event_id(boot, node, CODE, device or "", (nth,)),
        at=stamp,
        node=node,
        boot_id=boot,
        device=device,
        code=CODE,
        severity=row.severity,
        recovery=row.recovery,
        scope=row.scope,
        source=Source.CORRAL,
        first_at=stamp,
        last_at=stamp,
        fields={"gpu": uuid, "owner": owner},
        text=(
            f"{node} lists {uuid}, which {owner} has: what {node} says of it counts for nothing while {owner} is live"
            f" and lists it. If the card is in {node}, see why {owner} still lists it, or stop its agent"
        ),
    )
    yield EventLine(at=now, subject=subject, device=device, event=fleet.weighed(event))
    yield ConditionLine(
        at=now,
        subject=subject,
        device=device,
        id=condition_id(event.id, 0),
        code=CODE,
        state="open",
        severity=row.severity,
        since=now,
        last_at=now,
        reasons=(CODE,),
        clears_on=row.clears_on,
        events=(event.id,),
    )
