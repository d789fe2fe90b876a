"""Rules demote themselves: one that finds far more than faults ever are, or is wrong too often, falls back to shadow.

It fires on too many GPUs within an hour, or people mark too many of its holds wrong (``precision``). It stays in shadow
until a person has looked: until a policy is adopted anew, or the backlog is discarded; its count begins anew then.
"""

from collections.abc import Iterator
from itertools import takewhile

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.ledger import FLEET
from controller.core.fleet.precision import JUDGED_S, was_right
from vocab.lines import NoteLine

DEMOTED = "rule_demoted"
FIRED_S = 3600.0
FIRED_RATIO = 0.01  # of all GPUs in an hour: real faults come at a hundredth of that (Meta, NCSA: under 1 in 10,000)
FIRED_LEAST = 8  # ... but more than a whole node that dies
WRONG_RATIO = 0.1  # of a rule's holds
WRONG_LEAST = 3


def judge(fleet: Fleet, now: float) -> Iterator[NoteLine]:
    """Demote the rules that something was held for, or said about, since the last look."""
    for rule in list(fleet.work.rules):
        if rule not in fleet.ledger.demoted:
            yield from _demote(fleet, rule, now)


def _demote(fleet: Fleet, rule: str, now: float) -> Iterator[NoteLine]:
    why = _fires_too_often(fleet, rule, now) or _is_wrong_too_often(fleet, rule, now)
    if why is not None:
        text = f"{rule} {why}; it is in shadow until somebody looks"
        yield NoteLine(at=now, subject=FLEET, code=DEMOTED, text=text, rule=rule)


def _fires_too_often(fleet: Fleet, rule: str, now: float) -> str | None:
    since = max(now - FIRED_S, fleet.ledger.trusted_at)
    latest = reversed(fleet.ledger.holds_of_rule[rule].values())
    fired = {hold.subject for hold in takewhile(lambda hold: hold.at > since, latest)}
    if len(fired) <= max(FIRED_LEAST, FIRED_RATIO * len(fleet.gpus)):
        return None
    return f"fired on {len(fired)} of {len(fleet.gpus)} GPUs within an hour"


def _is_wrong_too_often(fleet: Fleet, rule: str, now: float) -> str | None:
    if len(fleet.ledger.verdicts) + len(fleet.ledger.forced) < WRONG_LEAST:
        return None  # nobody has said so much: a month of holds need not be looked through
    since = max(now - JUDGED_S, fleet.ledger.trusted_at)
    holds = [hold for hold in fleet.ledger.holds_of_rule[rule].values() if hold.op == "placed" and hold.at > since]
    wrong = [hold for hold in holds if was_right(fleet.ledger, hold) is False]
    if len(wrong) < WRONG_LEAST or len(wrong) <= WRONG_RATIO * len(holds):
        return None
    by_force = sum(hold.incident not in fleet.ledger.verdicts for hold in wrong)
    how = f"{len(wrong)} of {len(holds)} holds were {_how(len(wrong) - by_force, by_force)}"
    return f"was wrong in the eyes of people: {how}"


def _how(marked: int, by_force: int) -> str:
    words = [("marked wrong", marked), ("lifted by force", by_force)]
    return " or ".join(word for word, count in words if count)
