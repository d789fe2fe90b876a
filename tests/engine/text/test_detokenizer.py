import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.answer import AnswerText, Choice, Piece
from engine.core.sequence import Finish, Output, Sampling, TokenLogprobs
from engine.text.detokenizer import Detokenizer, StopFinder, WindowText
from engine.text.tokenizer import Tokenizer
from tests.engine.tiny import tokenizer

TOKENIZER = Tokenizer(tokenizer())
KINDS = (TOKENIZER.stream, lambda: WindowText(TOKENIZER.decode))
ANY = st.sampled_from(KINDS)
BROKEN = "\N{REPLACEMENT CHARACTER}"


def ids_of(text: str) -> list[int]:
    return TOKENIZER.encode(text, special=False)


def joined(one: Detokenizer, ids: list[int]) -> str:
    return "".join([*(one.push(token) for token in ids), one.flush()])


@given(ANY, st.text(max_size=60))
def test_pieces_joined_are_the_text(kind: object, text: str) -> None:
    assert joined(kind(), ids_of(text)) == text  # type: ignore[operator]


@given(ANY, st.lists(st.integers(0, 271), max_size=60))
def test_pieces_of_any_tokens_joined_are_their_text(kind: object, ids: list[int]) -> None:
    assert joined(kind(), ids) == TOKENIZER.decode(ids)  # type: ignore[operator]


@given(ANY, st.text(alphabet="aé東🌞", max_size=20))
def test_no_piece_of_a_whole_text_has_a_broken_character(kind: object, text: str) -> None:
    one = kind()  # type: ignore[operator]
    assert all(BROKEN not in one.push(token) for token in ids_of(text))


@pytest.mark.parametrize("kind", KINDS)
def test_a_character_cut_off_by_the_end_comes_out_as_broken(kind: object) -> None:
    one = kind()  # type: ignore[operator]
    assert {one.push(token) for token in ids_of("東")[:-1]} == {""}
    assert one.flush() == BROKEN


def test_a_flood_of_broken_characters_is_not_decoded_again_and_again() -> None:
    sizes = []

    def decode(ids: object) -> str:
        sizes.append(len(list(ids)))  # type: ignore[call-overload]
        return TOKENIZER.decode(list(ids))  # type: ignore[call-overload]

    one = WindowText(decode)
    first = ids_of("東")[0]
    text = "".join(one.push(first) for _ in range(2_000))
    assert max(sizes) <= 2 * 64
    assert len(text) > 1_900


def test_a_token_s_bytes_are_those_of_its_text() -> None:
    assert b"".join(TOKENIZER.bytes_of(token) for token in ids_of("Grüße, the 東\n")) == "Grüße, the 東\n".encode()
    assert TOKENIZER.bytes_of(1) == b"<|im_start|>"
    assert TOKENIZER.bytes_of(271) == b""


def test_text_before_a_stop_string_is_shown_and_nothing_after() -> None:
    one = StopFinder(["END"])
    assert [one.push(text) for text in ("one E", "N", "D two", "three")] == ["one ", "", "", ""]
    assert one.found == "END"


def test_a_stop_string_is_shown_if_it_is_wanted() -> None:
    one = StopFinder(["END"], include=True)
    assert [one.push(text) for text in ("one E", "N", "D two", "three")] == ["one ", "", "END", ""]


def test_what_only_looked_like_a_stop_string_is_shown() -> None:
    one = StopFinder(["END"])
    assert one.push("EN") == ""
    assert one.push("TER") == "ENTER"
    assert one.found is None


def test_the_first_of_several_stop_strings_counts() -> None:
    one = StopFinder(["bb", "a"])
    assert one.push("xabb") == "x"
    assert one.found == "a"


@given(st.lists(st.text(alphabet="ab", max_size=4), max_size=8), st.text(alphabet="ab", min_size=1, max_size=3))
def test_pieces_with_a_stop_string_are_the_text_before_it(pieces: list[str], stop: str) -> None:
    one = StopFinder([stop])
    shown = "".join([*(one.push(piece) for piece in pieces), "" if one.found else one.flush()])
    assert shown == "".join(pieces).partition(stop)[0]


def choice(most: int = 100, *, stops: tuple[str, ...] = (), generated: list[int] | None = None, include: bool = False,
           min_tokens: int = 0) -> Choice:  # fmt: skip
    rule = Sampling(max_tokens=most, stop_ids=frozenset({0}), min_tokens=min_tokens)
    return Choice([5, 6], rule, stops=stops, include_stop=include, generated=generated or [])


def answer(wanted: Choice, logprobs: dict[int, TokenLogprobs] | None = None) -> AnswerText:
    return AnswerText(TOKENIZER.stream(), wanted, logprobs)


def outputs(text: str, finish: Finish | None = None) -> list[Output]:
    ids = ids_of(text)
    return [Output("a", token, finish if place == len(ids) - 1 else None) for place, token in enumerate(ids)]


def test_an_answer_ends_at_a_stop_string_although_the_loop_goes_on() -> None:
    piece = answer(choice(stops=("stop",))).push(outputs("go stop go"))
    assert (piece.text, piece.finish, piece.stopped_by) == ("go ", Finish.STOP, "stop")


def test_a_stop_string_does_not_count_before_the_least_length() -> None:
    text = "ab ab ab"
    piece = answer(choice(stops=("b",), min_tokens=len(ids_of("ab ab")))).push(outputs(text))
    assert piece.text == "ab ab a"


@pytest.mark.parametrize(("include", "text"), [(False, "ab"), (True, "abc")])
def test_the_token_that_stops_is_counted_and_shown_only_if_wanted(include: bool, text: str) -> None:
    piece = answer(choice(include=include)).push(outputs("abc", Finish.STOP))
    assert (piece.text, len(piece.token_ids)) == (text, 3)


@pytest.mark.parametrize("finish", [Finish.LENGTH, Finish.STOP])
def test_what_was_held_back_comes_with_the_end(finish: Finish) -> None:
    one = answer(choice(stops=("cde",)))
    first = one.push(outputs("abc"))
    last = one.push([Output("a", ids_of("x")[0], finish)])
    assert first.text == "ab"
    assert last.text == ("cx" if finish is Finish.LENGTH else "c")


def test_a_piece_has_the_logprobs_of_its_tokens() -> None:
    found = {place: TokenLogprobs(-float(place)) for place in range(2, 9)}
    one = answer(choice(), found)
    pieces = [one.push(outputs("ab")), one.push(outputs("c"))]
    assert [[told.logprob for told in piece.logprobs] for piece in pieces] == [[-2.0, -3.0], [-4.0]]
    assert set(found) == {5, 6, 7, 8}


def told(pieces: list[Piece]) -> tuple[str, list[int], Finish | None, str | None]:
    tokens = list(itertools.chain.from_iterable(piece.token_ids for piece in pieces))
    return "".join(piece.text for piece in pieces), tokens, pieces[-1].finish, pieces[-1].stopped_by


@given(
    st.text(alphabet="ab東é ", max_size=12),
    st.sampled_from([(), ("b a",), ("東",), ("ab", "é ")]),
    st.booleans(),
    st.data(),
)
def test_a_resumed_answer_is_told_as_if_unbroken(
    text: str, stops: tuple[str, ...], end: bool, data: st.DataObject
) -> None:
    ids = [*ids_of(text), *([0] if end else [])]
    wanted = choice(max(1, len(ids)), stops=stops)
    everything = [Output("a", token, wanted.sampling.ends(token, place)) for place, token in enumerate(ids, 1)]

    def feed(one: AnswerText, some: list[Output]) -> list[Piece]:
        pieces = []
        for output in some:
            if not pieces or pieces[-1].finish is None:
                pieces.append(one.push([output]))
        return pieces

    whole = feed(answer(wanted), everything)
    cut = data.draw(st.integers(0, len(whole)))
    again = answer(choice(max(1, len(ids)), stops=stops, generated=ids[:cut]))
    rest = feed(again, everything[cut:]) if again.resumed.finish is None else []
    assert told(whole or [again.resumed]) == told([again.resumed, *rest])
    assert again.resumed.text == "".join(piece.text for piece in whole[:cut])
