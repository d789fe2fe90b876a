"""What a higher level would have done: the decisions of late that were only said, counted by their rule."""

from collections.abc import Iterable

import msgspec

from vocab.lines import ActionLine, AnyLine, HoldLine
from vocab.states import NEEDED_LEVEL, ActionState, Level

HOLD = "hold"


class Would(msgspec.Struct, frozen=True, kw_only=True):
    """One rule and one thing that it would have done: how often, where, when last, and why it was not done.

    ``level``: the level that includes it. A rule in shadow or a pause can forbid it as well, and ``why`` says so.
    """

    rule: str
    of: str
    level: Level
    times: int
    places: int
    last: float
    why: str


def would(lines: Iterable[AnyLine]) -> list[Would]:
    """By level, the lowest first, and within one the most frequent first."""
    found: dict[tuple[str, str], list[HoldLine | ActionLine]] = {}
    for line in lines:
        if is_would(line) and isinstance(line, HoldLine | ActionLine):
            of = HOLD if isinstance(line, HoldLine) else line.of.value
            found.setdefault(((line.rule or "").removeprefix("catalogue/"), of), []).append(line)
    told = [_one(rule, of, said) for (rule, of), said in found.items()]
    order = list(Level)
    return sorted(told, key=lambda each: (order.index(each.level), -each.times, each.rule, each.of))


def is_would(line: AnyLine) -> bool:
    """Whether it tells of something that was not done."""
    return (isinstance(line, HoldLine) and line.op == "would_place") or (
        isinstance(line, ActionLine) and line.state is ActionState.WOULD
    )


def _one(rule: str, of: str, said: list[HoldLine | ActionLine]) -> Would:
    last = max(said, key=lambda line: line.at)
    return Would(
        rule=rule or "–",
        of=of,
        level=NEEDED_LEVEL[last.of] if isinstance(last, ActionLine) else Level.CORDON,
        times=len(said),
        places=len({line.subject for line in said}),
        last=last.at,
        why=last.why if isinstance(last, ActionLine) else last.reason,
    )
