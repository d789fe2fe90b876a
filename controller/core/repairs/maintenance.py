"""The end of a maintenance: at its time by itself, also if nobody was there then, or when a person says so.

Its beginning is a person's order (``controller.core.operator``). The hold carries its own end, so a core that folds
the stored lines knows it.
"""

from collections.abc import Iterator

from controller.core.fleet.fleet import Fleet
from controller.core.repairs.holds import lift
from controller.core.replicas import retire
from controller.core.replicas.actions import move
from vocab.lines import AnyLine, HoldLine
from vocab.states import ActionKind, ActionState


def over(fleet: Fleet, now: float) -> Iterator[AnyLine]:
    """End those whose time has come."""
    for key in list(fleet.ledger.timed):
        hold = fleet.ledger.holds[key]
        if hold.until is not None and hold.until <= now:
            yield from end(fleet, hold, "maintenance is over: its time has come", now)


def end(fleet: Fleet, hold: HoldLine, why: str, now: float) -> Iterator[AnyLine]:
    """Its hold ends, and drains that were asked for and have not begun are called off."""
    yield lift(hold, why, now)
    for replica in fleet.roster.at(hold.subject.node or ""):
        for drain in fleet.ledger.of_subject(replica.subject, ActionKind.DRAIN):
            if drain.rule == retire.ASKED and drain.state is ActionState.WAITING:
                yield move(drain, ActionState.CANCELLED, why, now)
