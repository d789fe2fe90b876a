"""Partial lines match as their head says, and a miss is told so that it can be read."""

import pytest

from tests.corral.partial import Json, matches, missing_of

LINE: Json = {
    "at": 5.0,
    "kind": "hold",
    "subject": {"gpu": "G"},
    "op": "placed",
    "incident": None,
    "events": ["a", "b"],
}


@pytest.mark.parametrize(
    "partial",
    [
        {},
        {"kind": "hold", "at": 5},
        {"subject": {"gpu": "G"}},
        {"subject": {}},
        {"events": ["a", "b"]},
        {"incident": None, "nothing": None},
        {"op": {"any": True}},
    ],
)
def test_what_is_given_equals(partial: Json) -> None:
    assert matches(partial, LINE)


@pytest.mark.parametrize(
    "partial",
    [
        {"kind": "action"},
        {"subject": {"gpu": "H"}},
        {"events": ["a"]},
        {"events": ["b", "a"]},
        {"incident": {"any": True}},
        {"subject": None},
        {"at": True},
    ],
)
def test_what_differs_does_not_match(partial: Json) -> None:
    assert not matches(partial, LINE)


def test_objects_in_lists_are_partial_too() -> None:
    assert matches({"suspects": [{"gpu": "G"}]}, {"suspects": [{"gpu": "G", "confidence": "low"}]})


def test_order_counts() -> None:
    lines: list[Json] = [{"kind": "a"}, {"kind": "b"}]
    assert missing_of([{"kind": "a"}, {"kind": "b"}], lines) is None
    problem = missing_of([{"kind": "b"}, {"kind": "a"}], lines)
    assert problem is not None
    assert "comes before" in problem


def test_a_miss_shows_the_nearest_line_and_its_difference() -> None:
    problem = missing_of([{"kind": "hold", "subject": {"gpu": "G"}, "op": "lifted"}], [{"kind": "note"}, LINE])
    assert problem is not None
    assert 'op: "placed" instead of "lifted"' in problem
