"""What was decided, to be counted and compared: holds of the policy and repairs, each by its rule and its place."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from vocab.lines import ActionLine, AnyLine, HoldLine, Subject
from vocab.states import REPAIRS, ActionKind, ActionState

HOLD = "hold"
COUNTED = frozenset({*REPAIRS, ActionKind.QUARANTINE, ActionKind.RESTART_REPLICA})
DECIDED = frozenset({ActionState.ORDERED, ActionState.WAITING, ActionState.DONE})
MOST_PLACES = 20

Key = tuple[str, str, str]  # a rule, what it decides (hold, or the kind of a repair), and the GPU, node or replica


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """How often a rule decides something, by one policy and by another; ``places``: where only one of them does."""

    rule: str
    of: str
    before: int
    after: int
    places: tuple[str, ...] = ()


class Tally:
    """The decisions of one policy, counted as its lines come in.

    Each counts once: a repair that waits is decided, and what a level forbids is not.
    """

    def __init__(self, lines: Iterable[AnyLine] = ()) -> None:
        self.counts: Counter[Key] = Counter()
        self._known: set[str] = set()  # holds and actions that were counted
        self.add(lines)

    def add(self, lines: Iterable[AnyLine]) -> None:
        """Count what these lines decide."""
        for line in lines:
            key = _key(line)
            if key is not None and isinstance(line, HoldLine | ActionLine) and line.id not in self._known:
                self._known.add(line.id)
                self.counts[key] += 1


def _key(line: AnyLine) -> Key | None:
    if isinstance(line, HoldLine) and line.op == "placed" and line.rule is not None:
        return line.rule, HOLD, _name(line.subject)
    if isinstance(line, ActionLine) and line.of in COUNTED and line.state in DECIDED:
        return line.rule.removeprefix("catalogue/"), line.of.value, _name(line.subject)
    return None


def _name(subject: Subject) -> str:
    return subject.gpu or subject.node or subject.replica or ""


def compared(before: Tally, after: Tally) -> tuple[Count, ...]:
    """By rule and kind, what the two decide; the kinds that they decide alike are there too."""
    kinds: dict[tuple[str, str], set[str]] = {}
    for rule, of, place in (*before.counts, *after.counts):
        kinds.setdefault((rule, of), set()).add(place)
    return tuple(_count(rule, of, sorted(kinds[rule, of]), before.counts, after.counts) for rule, of in sorted(kinds))


def _count(rule: str, of: str, places: list[str], one: Counter[Key], other: Counter[Key]) -> Count:
    differing = [place for place in places if one[rule, of, place] != other[rule, of, place]]
    return Count(
        rule=rule,
        of=of,
        before=sum(one[rule, of, place] for place in places),
        after=sum(other[rule, of, place] for place in places),
        places=tuple(differing[:MOST_PLACES]),
    )
