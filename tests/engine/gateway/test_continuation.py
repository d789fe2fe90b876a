"""What the gateway asks of an engine so that a stream can go on elsewhere, and what of it the client sees."""

import json
from typing import Any

import pytest

from engine.gateway.ask import understand
from engine.gateway.continuation import Continuation, CutOff, continuation_of

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}


def made(wish: dict[str, Any]) -> Continuation | None:
    return continuation_of(understand("/v1/chat/completions", json.dumps(wish).encode()))


def event(number: int, text: str = "", **more: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None, "token_ids": [number], **more}
    return b"data: " + json.dumps({"id": "c-1", "created": 7, "choices": [choice]}).encode()


FIRST = b"data: " + json.dumps(
    {"id": "c-1", "created": 7, "prompt_token_ids": [1, 2],
     "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None, "token_ids": [5]}]}
).encode()  # fmt: skip


@pytest.mark.parametrize(
    ("more", "can"),
    [
        ({}, True),
        ({"n": 1}, True),
        ({"n": 2}, False),
        ({"stream": False}, False),
        ({"resume": {"prompt_token_ids": [1], "token_ids": []}}, False),
        ({"prompt": ["a"]}, True),
        ({"prompt": [4, 5]}, True),
        ({"prompt": ["a", "b"]}, False),
        ({"prompt": [[4], [5]]}, False),
    ],
)
def test_one_answer_that_streams_can_go_on_elsewhere(more: dict[str, Any], can: bool) -> None:
    assert (made(CHAT | more) is not None) is can


def test_ids_and_a_seed_are_asked_for_and_the_rest_is_as_the_client_wrote_it() -> None:
    stream = made(CHAT | {"top_p": 0.25, "seed": None})
    asked = json.loads(stream.body())
    assert (asked.pop("return_token_ids"), isinstance(seed := asked.pop("seed"), int)) == (True, True)
    assert asked == CHAT | {"top_p": 0.25}
    assert json.loads(stream.body())["seed"] == seed  # the same for whoever goes on
    assert json.loads(made(CHAT | {"seed": 3}).body())["seed"] == 3


def test_who_goes_on_is_told_all_that_came() -> None:
    stream = made(CHAT)
    stream.take(FIRST)
    stream.take(event(6, "a"))
    known = {"prompt_token_ids": [1, 2], "token_ids": [5, 6], "id": "c-1", "created": 7}
    assert json.loads(stream.body())["resume"] == known


def test_a_client_sees_no_ids_that_it_did_not_ask_for() -> None:
    stream = made(CHAT)
    first, second = json.loads(stream.take(FIRST)[6:]), json.loads(stream.take(event(6, "a"))[6:])
    assert first["choices"][0] == {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
    assert "prompt_token_ids" not in first
    assert second["choices"][0] == {"index": 0, "delta": {"content": "a"}, "finish_reason": None}
    assert stream.take(event(7)) == b""  # half a letter, which was only told for its id
    assert stream.tokens == [5, 6, 7]


def test_a_client_that_asked_for_ids_gets_each_event_byte_for_byte() -> None:
    stream = made(CHAT | {"return_token_ids": True})
    for each in (FIRST, event(6), b": a comment", b"data: [DONE]"):
        assert stream.take(each) == each


def test_a_replica_that_stops_early_is_not_believed_to_have_ended_the_answer() -> None:
    stream = made(CHAT)
    stream.take(FIRST)
    with pytest.raises(CutOff) as cut:
        stream.take(event(6, "left over", finish_reason="abort"))
    assert (cut.value.failed, stream.tokens) == (False, [5])
    with pytest.raises(CutOff) as cut:
        stream.take(b'data: {"error": {"code": "failed"}}')
    assert cut.value.failed


def test_an_error_that_any_replica_would_give_is_passed_on() -> None:
    stream = made(CHAT)
    stream.take(FIRST)
    told = b'data: {"error": {"type": "invalid_request_error", "code": "form_too_slow"}}'
    assert (stream.take(told), stream.refused) == (told, True)


@pytest.mark.parametrize("usage", [False, True])
def test_an_answer_that_broke_behind_its_last_word_is_not_ended_twice(usage: bool) -> None:
    stream = made(CHAT | {"stream_options": {"include_usage": usage}})
    stream.take(FIRST)
    stream.take(event(6, "a", finish_reason="stop"))
    assert stream.lacks_only_its_end is not usage
    assert stream.take(event(6, "", finish_reason="stop")) == b""
    told = b'data: {"id": "c-1", "choices": [], "usage": {"total_tokens": 4}}'
    assert json.loads(stream.take(told)[6:]) == json.loads(told[6:])
    assert stream.lacks_only_its_end
