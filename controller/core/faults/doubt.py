"""Doubt: when too much looks sick at once, we are wrong, not the fleet. Of one rule: ``demotion``.

A cordon finds no room. The condition stands for the whole fleet until nothing waits for room any more or a person
discards what waits; ingest, releases and recovery go on.
"""

from collections.abc import Iterator

from controller.core.faults import conditions
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.ledger import FLEET, TOO_MUCH
from controller.core.fleet.names import condition_id
from vocab.lines import ConditionLine, NoteLine
from vocab.states import ClearsOn


def judge(fleet: Fleet, now: float) -> Iterator[ConditionLine | NoteLine]:
    """Open or end the doubt about the fleet."""
    ledger = fleet.ledger
    found = (h for h in ledger.would_holds.values() if h.budget is not None and h.at > ledger.discarded_at)
    waiting = next(found, None)
    key = ledger.open_conditions.get((FLEET, TOO_MUCH, None))
    if key is not None and waiting is None:
        yield conditions.end(ledger.conditions[key], now)
    elif key is None and waiting is not None:
        yield _open(fleet, now)
        first = waiting.budget
        text = f"{first.used:g} of {first.limit:g} {first.of}" if first is not None else ""
        yield NoteLine(at=now, subject=FLEET, code=TOO_MUCH, text=f"over budget: {text}; look before you act")


def _open(fleet: Fleet, now: float) -> ConditionLine:
    return ConditionLine(
        at=now,
        subject=FLEET,
        id=condition_id(TOO_MUCH, sum(one.code == TOO_MUCH for one in fleet.ledger.conditions.values())),
        code=TOO_MUCH,
        state="open",
        severity=fleet.row(TOO_MUCH).severity,
        since=now,
        last_at=now,
        reasons=(TOO_MUCH,),
        clears_on=ClearsOn.PERSON,
    )
