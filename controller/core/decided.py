"""What was decided, to be counted and compared: holds of the policy and repairs, each by its rule and its place."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from controller.core.fleet.kinds import REPAIRS
from vocab.lines import ActionLine, AnyLine, HoldLine, Subject
from vocab.states import ActionKind, ActionState

HOLD = "hold"
COUNTED = frozenset({*REPAIRS, ActionKind.QUARANTINE, ActionKind.RESTART_REPLICA})
DECIDED = frozenset({ActionState.ORDERED, ActionState.WAITING, ActionState.DONE})
MOST_PLACES = 20


class Deed(msgspec.Struct, frozen=True):
    """One decision. ``of``: hold, or the kind of a repair; ``place``: the GPU, node or replica that it takes."""

    at: float
    of: str
    rule: str
    place: str


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """How often a rule decides something, by one policy and by another; ``places``: where only one of them does."""

    rule: str
    of: str
    before: int
    after: int
    places: tuple[str, ...] = ()


def deeds(lines: Iterable[AnyLine]) -> list[Deed]:
    """The decisions in these lines, each once: a repair that waits is decided, what a level forbids is not."""
    found: dict[tuple[str, str], Deed] = {}
    for line in lines:
        if isinstance(line, HoldLine) and line.op == "placed" and line.rule is not None:
            found.setdefault((HOLD, line.id), Deed(line.at, HOLD, line.rule, _name(line.subject)))
        elif isinstance(line, ActionLine) and line.of in COUNTED and line.state in DECIDED:
            rule = line.rule.removeprefix("catalogue/")
            found.setdefault((line.of.value, line.id), Deed(line.at, line.of.value, rule, _name(line.subject)))
    return list(found.values())


def _name(subject: Subject) -> str:
    return subject.gpu or subject.node or subject.replica or ""


def compared(before: Sequence[Deed], after: Sequence[Deed]) -> tuple[Count, ...]:
    """By rule and kind, what the two decide; the kinds that they decide alike are there too."""
    one, other = (Counter((deed.rule, deed.of, deed.place) for deed in each) for each in (before, after))
    kinds = sorted({(deed.rule, deed.of) for deed in (*before, *after)})
    return tuple(_count(rule, of, one, other) for rule, of in kinds)


def _count(rule: str, of: str, one: Counter[tuple[str, str, str]], other: Counter[tuple[str, str, str]]) -> Count:
    places = sorted({key[2] for key in one.keys() | other.keys() if key[:2] == (rule, of)})
    differing = [place for place in places if one[rule, of, place] != other[rule, of, place]]
    return Count(
        rule=rule,
        of=of,
        before=sum(one[rule, of, place] for place in places),
        after=sum(other[rule, of, place] for place in places),
        places=tuple(differing[:MOST_PLACES]),
    )
