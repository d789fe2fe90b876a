"""The order of lines that share one moment: what was seen, what it means, what is done about it."""

from collections.abc import Iterable

from vocab.lines import (
    ActionLine,
    AnyLine,
    ConditionLine,
    EventLine,
    FinalLine,
    HoldLine,
    IncidentLine,
    NoteLine,
    StateLine,
)

ORDER: tuple[type[AnyLine], ...] = (
    EventLine,
    ConditionLine,
    IncidentLine,
    StateLine,
    HoldLine,
    ActionLine,
    NoteLine,
    FinalLine,
)
_RANK = {kind: rank for rank, kind in enumerate(ORDER)}


def in_order(lines: Iterable[AnyLine]) -> list[AnyLine]:
    """Lines of one moment by kind; those of one kind stay in the order in which they were decided."""
    return sorted(lines, key=lambda line: _RANK[type(line)])
