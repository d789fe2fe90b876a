"""One field value of DCGM: every blank of every type is none and says which, and nothing else is."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.sources.dcgm.values import Value, decode
from tests.fakes.dcgm.structs import FieldValue2

KINDS = ("BLANK", "NOT_FOUND", "NOT_SUPPORTED", "NOT_PERMISSIONED")
FIRST_OF_INT32, FIRST_OF_INT64, FIRST_OF_DOUBLE = 2147483632, 9223372036854775792, 140737488355328.0


def value(kind: str, content: float | str, status: int = 0) -> Value:
    made = FieldValue2(entityGroupId=1, entityId=3, fieldId=150, fieldType=ord(kind), status=status, ts=5_000_000)
    if isinstance(content, str):
        made.value.str = content.encode()
    elif kind == "d":
        made.value.dbl = content
    else:
        made.value.i64 = int(content)
    return decode(made)


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize(("kind", "first"), [("i", FIRST_OF_INT32), ("i", FIRST_OF_INT64), ("d", FIRST_OF_DOUBLE)])
def test_a_blank_of_any_type_says_which_it_is(kind: str, first: float, number: int) -> None:
    found = value(kind, first + number)
    assert (found.number, found.error) == (None, KINDS[number])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("<<<NULL>>>", "BLANK"),
        ("<<<NOT_FOUND>>>", "NOT_FOUND"),
        ("<<<NOT_SUPPORTED>>>", "NOT_SUPPORTED"),
        ("<<<NOT_PERM>>>", "NOT_PERMISSIONED"),
        ("NVIDIA H100", None),
    ],
)
def test_a_text_in_brackets_is_none(text: str, error: str | None) -> None:
    found = value("s", text)
    assert (found.text, found.error) == (None if error else text, error)


def test_a_status_comes_before_the_value() -> None:
    found = value("i", FIRST_OF_INT64, status=-14)
    assert (found.number, found.error, found.gpu, found.field, found.at) == (None, "NO_DATA", 3, 150, 5.0)


def test_not_a_number_and_a_blob_are_none() -> None:
    assert value("d", math.nan).error == "BLANK"
    assert value("b", 1).error == "BLANK"


def test_beyond_the_known_blanks_nothing_is_a_value() -> None:
    assert value("i", 2**63 - 1).error == "BLANK"
    assert value("d", 2.0**60).error == "BLANK"


@given(st.integers(-(2**63), FIRST_OF_INT32 - 1))
def test_any_other_count_is_itself(number: int) -> None:
    assert value("i", number).number == number


@given(st.floats(-1e12, 1e12))
def test_any_other_figure_is_itself(number: float) -> None:
    assert value("d", number).number == number
