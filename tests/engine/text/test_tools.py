import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.answer import Choice, Piece
from engine.api.replies import ChatForm
from engine.api.requests import ChatRequest, decode
from engine.api.wishes import messages_of
from engine.core.sequence import Finish, Sampling
from engine.text.chat import ChatTemplate
from engine.text.tokenizer import Tokenizer
from engine.text.tools import ToolCalls
from tests.engine.replica import replica, settings
from tests.engine.tiny import tokenizer

CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


def read(pieces: list[str]) -> tuple[str, list[tuple[str, Any]]]:
    one = ToolCalls()
    shown, calls = "", []
    for piece in pieces:
        text, found = one.push(piece)
        shown += text
        calls += [(call.name, json.loads(call.arguments)) for call in found]
    return shown + one.flush(), calls


WEATHER = ("weather", {"city": "Rome"})


@pytest.mark.parametrize(
    ("text", "shown", "calls"),
    [
        ("no call", "no call", []),
        (CALL, "", [WEATHER]),
        ("I look. " + CALL + "\n" + CALL, "I look. \n", [WEATHER, WEATHER]),
        ("<tool_call>no JSON</tool_call>", "<tool_call>no JSON</tool_call>", []),
        (CALL[:-4], CALL[:-4], []),
        ('<tool_call>{"name": "now"}</tool_call>', "", [("now", {})]),
        ("a < b <tool", "a < b <tool", []),
    ],
)
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_calls_are_told_from_text(text: str, shown: str, calls: list[Any], size: int) -> None:
    assert read([text[place : place + size] for place in range(0, len(text), size)]) == (shown, calls)


@given(st.lists(st.sampled_from(["<tool_call>", "</tool_call>", '{"name": "f"}', "<tool", "_call>", "x", "\n"])))
def test_the_cut_of_the_pieces_changes_nothing(pieces: list[str]) -> None:
    assert read(pieces) == read(["".join(pieces)])


def form(**wish: Any) -> ChatForm:
    asked = {"model": "m", "messages": [{"role": "user", "content": "a"}], "tools": [TOOL], **wish}
    request: ChatRequest = decode(json.dumps(asked).encode(), ChatRequest)
    return ChatForm(request, [Choice([5], Sampling(9))], Tokenizer(tokenizer()), reads_calls=True)


def test_a_whole_answer_has_its_calls() -> None:
    [choice] = form().whole([[Piece(CALL, [1, 2], Finish.STOP)]])["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    [call] = choice["message"]["tool_calls"]
    assert call["function"] == {"name": "weather", "arguments": '{"city":"Rome"}'}


def test_a_stream_gives_each_call_when_it_is_whole() -> None:
    one = form()
    pieces = [Piece("ok " + CALL[:20], [1]), Piece(CALL[20:] + CALL, [2, 3]), Piece("", [4], Finish.STOP)]
    deltas = [chunk["choices"][0] for piece in pieces if (chunk := one.chunk(0, piece)) is not None]
    assert deltas[0]["delta"] == {"role": "assistant", "content": "ok "}
    assert [call["index"] for call in deltas[1]["delta"]["tool_calls"]] == [0, 1]
    assert deltas[2]["finish_reason"] == "tool_calls"


def test_a_resumed_stream_tells_no_call_twice() -> None:
    one = form()
    assert one.chunk(0, Piece("ok " + CALL + CALL[:20], [1, 2], known=True)) is None
    found = one.chunk(0, Piece(CALL[20:], [3], Finish.STOP))
    assert found is not None
    assert [call["index"] for call in found["choices"][0]["delta"]["tool_calls"]] == [1]
    assert found["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("wish", [{"tools": None}, {"tools": []}, {"tool_choice": "none"}])
def test_without_tools_a_call_is_text(wish: dict[str, Any]) -> None:
    [choice] = form(**wish).whole([[Piece(CALL, [1], Finish.STOP)]])["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == (CALL, "stop")


def test_earlier_calls_go_through_the_template_as_objects() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    asked = {
        "model": "m",
        "messages": [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
        ],
    }
    request: ChatRequest = decode(json.dumps(asked).encode(), ChatRequest)
    source = (
        "{% for tool in tools %}{{ tool.function.name }};{% endfor %}{% for m in messages %}"
        "{{ m.role }}:{{ m.content }}{% for c in m.tool_calls %}{{ c.function | tojson }}{% endfor %}"
        "{{ m.tool_call_id }};{% endfor %}{{ mood }}"
    )
    text = ChatTemplate(source, {}, "here").render(messages_of(request.messages), tools=[TOOL], more={"mood": "fine"})
    assert text == ('weather;assistant:{"name": "weather", "arguments": {"city": "Rome"}};tool:sunnyc1;fine')


async def test_tools_go_to_a_template_that_does_not_know_them_without_harm(tiny_model: Path) -> None:
    wish = {"model": "tiny", "messages": [{"role": "user", "content": "a"}], "tools": [TOOL], "max_tokens": 3}
    async with replica(settings(tiny_model)) as here:
        status, body, _ = await here.call("POST", "/v1/chat/completions", wish)
    assert status == 200
    assert "tool_calls" not in body["choices"][0]["message"]
