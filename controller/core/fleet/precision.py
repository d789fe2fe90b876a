"""How often a rule was right, in the eyes of people: of its holds, those that they called right and wrong.

A verdict is given on an incident (``corral incident close ID --verdict right|wrong``) and counts for all that was held
or would have been held for it, so rules can be judged before they act. A hold that somebody lifts by force
while its incident is open is wrong, unless a verdict says otherwise. What nobody judged says nothing.
"""

from math import sqrt

import msgspec

from controller.core.fleet.ledger import Ledger
from vocab.lines import HoldLine

JUDGED_S = 28 * 86400.0  # within the history that is kept, so that a restart counts the same
HOUR_S = 3600.0
Z = 1.959964  # of the normal distribution, for 95 %


class Precision(msgspec.Struct, frozen=True, kw_only=True):
    """A rule's record over 28 days. ``holds`` were placed, ``would``: only said; ``low`` to ``high`` holds 95 %."""

    rule: str
    holds: int
    would: int
    right: int
    wrong: int
    ratio: float | None
    low: float | None
    high: float | None

    @property
    def unjudged(self) -> int:
        """Those of which nobody has said anything."""
        return self.holds + self.would - self.right - self.wrong


def wilson(right: int, judged: int) -> tuple[float, float]:
    """The Wilson score interval of a share at 95 %; it stays within 0 and 1 for few and for one-sided samples."""
    share, z2 = right / judged, Z * Z
    middle = share + z2 / (2 * judged)
    half = Z * sqrt(share * (1 - share) / judged + z2 / (4 * judged * judged))
    return max(0.0, (middle - half) / (1 + z2 / judged)), min(1.0, (middle + half) / (1 + z2 / judged))


def was_right(ledger: Ledger, hold: HoldLine) -> bool | None:
    """What people said of a hold; None if they said nothing."""
    said = ledger.verdicts.get(hold.incident or "")
    if said is not None:
        return said
    return False if hold.id in ledger.forced else None


def of_rule(ledger: Ledger, rule: str, now: float) -> Precision:
    """The record of one rule."""
    decided = [hold for hold in ledger.holds_of_rule.get(rule, {}).values() if hold.at > now - JUDGED_S]
    said = [was_right(ledger, hold) for hold in decided]
    right, wrong = said.count(True), said.count(False)
    judged = right + wrong
    low, high = wilson(right, judged) if judged else (None, None)
    placed = sum(hold.op == "placed" for hold in decided)
    return Precision(
        rule=rule,
        holds=placed,
        would=len(decided) - placed,
        right=right,
        wrong=wrong,
        ratio=right / judged if judged else None,
        low=low,
        high=high,
    )


class Records:
    """The records of all rules: drawn anew when something has been decided or said, or as time passes them by."""

    def __init__(self) -> None:
        self._mark = (-1, -1)
        self._drawn: tuple[Precision, ...] = ()

    def of(self, ledger: Ledger, now: float) -> tuple[Precision, ...]:
        """Those of the rules that have decided anything lately, by name."""
        mark = (ledger.recorded, int(now // HOUR_S))
        if mark != self._mark:
            found = (of_rule(ledger, rule, now) for rule in sorted(ledger.holds_of_rule))
            self._mark, self._drawn = mark, tuple(one for one in found if one.holds or one.would)
        return self._drawn
