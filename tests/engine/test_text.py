import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.answer import AnswerText
from engine.sequence import Finish, Output
from engine.text import Detokenizer, StopFinder
from tests.engine.tiny import tokenizer

TOKENIZER = tokenizer()


def decode(ids: object) -> str:
    return str(TOKENIZER.decode(list(ids), skip_special_tokens=True))  # type: ignore[call-overload]


def ids_of(text: str) -> list[int]:
    return list(TOKENIZER.encode(text, add_special_tokens=False).ids)


@given(st.text(max_size=60))
def test_pieces_joined_are_the_text(text: str) -> None:
    one = Detokenizer(decode)
    assert "".join([*(one.push(token) for token in ids_of(text)), one.flush()]) == text


@given(st.lists(st.integers(0, 265), max_size=40))
def test_pieces_of_any_tokens_joined_are_their_text(ids: list[int]) -> None:
    one = Detokenizer(decode)
    assert "".join([*(one.push(token) for token in ids), one.flush()]) == decode(ids)


@given(st.text(alphabet="aé東🌞", max_size=20))
def test_no_piece_of_a_whole_text_has_a_broken_character(text: str) -> None:
    one = Detokenizer(decode)
    assert all("\N{REPLACEMENT CHARACTER}" not in one.push(token) for token in ids_of(text))


def test_a_character_cut_off_by_the_end_comes_out_as_broken() -> None:
    one = Detokenizer(decode)
    pieces = [one.push(token) for token in ids_of("東")[:-1]]
    assert set(pieces) == {""}
    assert one.flush() == "\N{REPLACEMENT CHARACTER}"


def test_text_before_a_stop_string_is_shown_and_nothing_after() -> None:
    one = StopFinder(["END"])
    assert [one.push(text) for text in ("one E", "N", "D two", "three")] == ["one ", "", "", ""]
    assert one.found


def test_what_only_looked_like_a_stop_string_is_shown() -> None:
    one = StopFinder(["END"])
    assert one.push("EN") == ""
    assert one.push("TER") == "ENTER"
    assert not one.found


def test_the_first_of_several_stop_strings_counts() -> None:
    one = StopFinder(["bb", "a"])
    assert one.push("xabb") == "x"


@given(st.lists(st.text(alphabet="ab", max_size=4), max_size=8), st.text(alphabet="ab", min_size=1, max_size=3))
def test_pieces_with_a_stop_string_are_the_text_before_it(pieces: list[str], stop: str) -> None:
    one = StopFinder([stop])
    shown = "".join([*(one.push(piece) for piece in pieces), "" if one.found else one.flush()])
    assert shown == "".join(pieces).partition(stop)[0]


def outputs(text: str, finish: Finish) -> list[Output]:
    ids = ids_of(text)
    return [Output("a", token, finish if place == len(ids) - 1 else None) for place, token in enumerate(ids)]


def test_an_answer_ends_at_a_stop_string_although_the_loop_goes_on() -> None:
    piece = AnswerText(decode, ["stop"]).push([Output("a", token) for token in ids_of("go stop go")])
    assert (piece.text, piece.finish) == ("go ", Finish.STOP)


def test_the_token_that_stops_is_counted_and_not_shown() -> None:
    piece = AnswerText(decode, []).push(outputs("abc", Finish.STOP))
    assert (piece.text, len(piece.token_ids)) == ("ab", 3)


@pytest.mark.parametrize("finish", [Finish.LENGTH, Finish.STOP])
def test_what_was_held_back_comes_with_the_end(finish: Finish) -> None:
    answer = AnswerText(decode, ["cde"])
    first = answer.push([Output("a", token) for token in ids_of("abc")])
    last = answer.push([Output("a", ids_of("x")[0], finish)])
    assert first.text == "ab"
    assert last.text == ("cx" if finish is Finish.LENGTH else "c")
