"""Doubt: when too much looks sick at once, or one rule finds far more than it ever did, we are wrong, not the fleet.

*Too much*: a cordon finds no room. The condition stands for the whole fleet until nothing waits for room any more or
a person discards what waits; ingest, releases and recovery go on. *A rule falls back to shadow* when it fires on too
many GPUs within an hour, or when people lift too many of its holds by force; it stays there until a person has looked
(``discard_backlog``).
"""

from collections.abc import Iterator

from controller.core import conditions
from controller.core.fleet import Fleet
from controller.core.names import condition_id
from vocab.lines import AnyLine, ConditionLine, NoteLine, Subject
from vocab.states import ClearsOn

TOO_MUCH = "too_much_sick"
DEMOTED = "rule_demoted"
FLEET = Subject()
FIRED_S = 3600.0
FIRED_RATIO = 0.01  # of all GPUs in an hour: real faults come at a hundredth of that (Meta, NCSA: under 1 in 10,000)
FIRED_LEAST = 8  # ... but more than a whole node that dies
WRONG_RATIO = 0.1  # of a rule's holds lifted by force
WRONG_LEAST = 3


def judge(fleet: Fleet, now: float) -> Iterator[AnyLine]:
    """Open or end the doubt about the fleet, and demote rules."""
    yield from _too_much(fleet, now)
    for rule in list(fleet.work.rules):
        if rule not in fleet.ledger.demoted:
            yield from _demote(fleet, rule, now)


def _too_much(fleet: Fleet, now: float) -> Iterator[ConditionLine | NoteLine]:
    ledger = fleet.ledger
    waiting = [h for h in ledger.would_holds.values() if h.budget is not None and h.at > ledger.discarded_at]
    key = ledger.open_conditions.get((FLEET, TOO_MUCH, None))
    if key is not None and not waiting:
        yield conditions.end(ledger.conditions[key], now)
    elif key is None and waiting:
        yield _open(fleet, now)
        first = waiting[0].budget
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


def _demote(fleet: Fleet, rule: str, now: float) -> Iterator[NoteLine]:
    why = _fires_too_often(fleet, rule, now) or _is_wrong_too_often(fleet, rule)
    if why is not None:
        text = f"{rule} {why}; it is in shadow until somebody looks"
        yield NoteLine(at=now, subject=FLEET, code=DEMOTED, text=text, rule=rule)


def _fires_too_often(fleet: Fleet, rule: str, now: float) -> str | None:
    since = max(now - FIRED_S, fleet.ledger.discarded_at)
    fired = {hold.subject for hold in fleet.ledger.holds_of_rule[rule].values() if hold.at > since}
    if len(fired) <= max(FIRED_LEAST, FIRED_RATIO * len(fleet.gpus)):
        return None
    return f"fired on {len(fired)} of {len(fleet.gpus)} GPUs within an hour"


def _is_wrong_too_often(fleet: Fleet, rule: str) -> str | None:
    since = fleet.ledger.discarded_at
    holds = [hold for hold in fleet.ledger.holds_of_rule[rule].values() if hold.op == "placed" and hold.at > since]
    wrong = [hold for hold in holds if hold.id in fleet.ledger.forced]
    if len(wrong) < WRONG_LEAST or len(wrong) <= WRONG_RATIO * len(holds):
        return None
    return f"was wrong in the eyes of people: {len(wrong)} of {len(holds)} holds were lifted by force"
