"""Others on managed nodes: who else is at work where something is held, and marks of ours that nothing explains."""

from collections.abc import Iterator

from controller.core.faults import conditions
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.names import condition_id
from controller.core.repairs.closing import Place, is_held
from controller.core.repairs.holds import is_fence
from vocab.lines import ConditionLine, NoteLine, Subject
from vocab.states import ClearsOn

OTHER = "other_remediator"


def judge(fleet: Fleet, now: float) -> Iterator[ConditionLine | NoteLine]:
    """Say where somebody else is at work, and which mark of ours no hold explains."""
    if fleet.managers.known:
        yield from _at_work(fleet, now)
        yield from _orphans(fleet, now)


def _at_work(fleet: Fleet, now: float) -> Iterator[ConditionLine | NoteLine]:
    """A condition of each node on which somebody else is at work while something of ours is held there."""
    held = _held_nodes(fleet)
    busy = {node: one for node in held for one in fleet.managers.of(node) if one.other}
    known = {subject.node or "": key for subject, key in fleet.ledger.docket.conditions(OTHER)}
    for node, key in known.items():
        is_told = bool(fleet.managers.of(node)) or not fleet.managers.unheard()
        if node not in busy and (is_told or node not in held):
            yield conditions.end(fleet.ledger.conditions[key], now)
    for node, managed in busy.items():
        if node not in known:
            yield _opened(fleet, node, now)
            yield NoteLine(at=now, subject=Subject(node=node), code=OTHER, text=f"{managed.by}: {managed.other}")


def _held_nodes(fleet: Fleet) -> dict[str, None]:
    """The nodes on which something is held, other than by a fence."""
    holds = [hold for hold in fleet.ledger.holds.values() if not is_fence(hold)]
    found = (fleet.gpus[h.subject.gpu].node if h.subject.gpu in fleet.gpus else h.subject.node for h in holds)
    return {node: None for node in found if node is not None}


def _opened(fleet: Fleet, node: str, now: float) -> ConditionLine:
    subject = Subject(node=node)
    nth = sum((one.code, one.subject) == (OTHER, subject) for one in fleet.ledger.conditions.values())
    return ConditionLine(
        at=now,
        subject=subject,
        id=condition_id(f"{OTHER}/{node}", nth),
        code=OTHER,
        state="open",
        severity=fleet.row(OTHER).severity,
        since=now,
        last_at=now,
        reasons=(OTHER,),
        clears_on=ClearsOn.SIGNAL,
    )


def _orphans(fleet: Fleet, now: float) -> Iterator[NoteLine]:
    """Say of a mark of ours that no hold explains, as after an old database was restored: a person gives it back."""
    for node in list(fleet.work.nodes):
        for managed in fleet.managers.of(node):
            for name in managed.ours:
                subject = Subject(node=node) if name == node else Subject(gpu=name)
                if (managed.by, subject) in fleet.ledger.closings or is_held(fleet, Place(managed.by, node, subject)):
                    continue
                text = (
                    f"{managed.by} keeps {name} closed with a mark of Corral that no hold explains: give it back there"
                )
                note = NoteLine(at=now, subject=subject, code="manager_mark_orphaned", text=text)
                if (note.subject, note.code, note.text) not in fleet.ledger.notes:
                    yield note
