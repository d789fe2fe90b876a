"""Alertmanager's inhibition in a few lines, for tests and for the month that is played: is an alert kept silent?"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Labels = Mapping[str, str]
_MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"(.*)"')


def matches(labels: Labels, matchers: Sequence[str]) -> bool:
    """Whether an alert has what all of these ask for; a label that is missing is empty."""
    return all(_matches(labels, *found.groups()) for each in matchers if (found := _MATCHER.fullmatch(each)))


def _matches(labels: Labels, name: str, how: str, wanted: str) -> bool:
    have = labels.get(name, "")
    equal = re.fullmatch(wanted, have) is not None if "~" in how else have == wanted
    return equal is not how.startswith("!")


def inhibited(target: Labels, firing: Iterable[Labels], rules: Sequence[Mapping[str, Any]]) -> bool:
    """Whether one of the firing alerts keeps this one silent. An alert never silences itself."""
    mine = [rule for rule in rules if matches(target, rule["target_matchers"])]
    return any(
        matches(source, rule["source_matchers"])
        and all(source.get(name, "") == target.get(name, "") for name in rule.get("equal", ()))
        for rule in mine
        for source in firing
        if source != target
    )
