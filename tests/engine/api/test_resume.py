"""A stream that broke goes on elsewhere as if nothing had been: from the tokens that it had carried."""

from pathlib import Path
from typing import Any

import pytest

from tests.engine.replica import events, replica, settings

PROMPT = "the tin can"
TEXT = "/v1/completions"
CHAT = "/v1/chat/completions"
SAY = {"messages": [{"role": "user", "content": PROMPT}]}


async def chunks_of(here: Any, path: str, **wish: Any) -> list[Any]:
    body = {
        "model": "tiny",
        "stream": True,
        "return_token_ids": True,
        "stream_options": {"include_usage": True},
        **wish,
    }
    async with here.session.post(here.base + path, json=body) as answer:
        assert answer.status == 200, await answer.text()
        *chunks, done = await events(answer)
    assert done == "[DONE]"
    return chunks


def text_of(chunks: list[Any]) -> str:
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    return "".join(choice["text"] if "text" in choice else choice["delta"].get("content", "") for choice in choices)


def tokens_of(chunks: list[Any]) -> list[int]:
    return [token for chunk in chunks for choice in chunk["choices"] for token in choice["token_ids"]]


def usage_of(chunks: list[Any]) -> dict[str, Any]:
    """The last chunk, but for what the prefix cache of this replica happened to have."""
    usage = {name: count for name, count in chunks[-1]["usage"].items() if name != "prompt_tokens_details"}
    return chunks[-1] | {"usage": usage}


def resume(chunks: list[Any]) -> dict[str, Any]:
    first = chunks[0]
    prompt = first.get("prompt_token_ids") or first["choices"][0]["prompt_token_ids"]
    return {"prompt_token_ids": prompt, "token_ids": tokens_of(chunks), "id": first["id"], "created": first["created"]}


WISHES: list[dict[str, Any]] = [
    {"temperature": 0},
    {"temperature": 1, "seed": 5},
    {"temperature": 0.9, "seed": 6, "top_p": 0.9, "top_k": 40, "min_p": 0.01},
    {"temperature": 0, "repetition_penalty": 1.3, "presence_penalty": 0.7, "frequency_penalty": 0.4},
    {"temperature": 1, "seed": 2, "frequency_penalty": 1.0, "min_tokens": 15, "ignore_eos": False},
    {"temperature": 1, "seed": 9, "logprobs": 2},
]


@pytest.mark.parametrize("wish", WISHES, ids=str)
async def test_a_resumed_stream_is_what_the_unbroken_one_was(wish: dict[str, Any], tiny_model: Path) -> None:
    wish = {"max_tokens": 20, "ignore_eos": True, "prompt": PROMPT, **wish}
    async with replica(settings(tiny_model)) as here:
        whole = await chunks_of(here, TEXT, **wish)
        for cut in (1, 7, len(whole) - 2):
            rest = await chunks_of(here, TEXT, **wish, resume=resume(whole[:cut]))
            assert tokens_of(rest) == tokens_of(whole[cut:])
            assert text_of(rest) == text_of(whole[cut:])
            assert usage_of(rest) == usage_of(whole)
            assert rest[-2]["choices"][0]["finish_reason"] == whole[-2]["choices"][0]["finish_reason"]


async def test_a_stop_string_over_the_break_is_found(tiny_model: Path) -> None:
    wish = {"max_tokens": 30, "ignore_eos": True, "prompt": PROMPT, "temperature": 0}
    async with replica(settings(tiny_model)) as here:
        text = text_of(await chunks_of(here, TEXT, **wish))
        wish["stop"] = text[9:14]
        whole = await chunks_of(here, TEXT, **wish)
        for cut in range(1, len(whole) - 1):
            rest = await chunks_of(here, TEXT, **wish, resume=resume(whole[:cut]))
            assert text_of(whole[:cut]) + text_of(rest) == text_of(whole)
            assert rest[-2]["choices"][0]["stop_reason"] == wish["stop"]


async def test_a_chat_goes_on_without_a_second_beginning(tiny_model: Path) -> None:
    wish = {**SAY, "max_tokens": 12, "ignore_eos": True, "temperature": 0}
    async with replica(settings(tiny_model)) as here:
        whole = await chunks_of(here, CHAT, **wish)
        rest = await chunks_of(here, CHAT, **wish, resume=resume(whole[:4]))
    assert all("role" not in choice["delta"] for chunk in rest for choice in chunk["choices"])
    assert all("prompt_token_ids" not in chunk for chunk in rest)
    assert (text_of(rest), tokens_of(rest)) == (text_of(whole[4:]), tokens_of(whole[4:]))
    assert usage_of(rest) == usage_of(whole)


async def test_an_answer_that_lacked_only_its_last_words_gets_them(tiny_model: Path) -> None:
    wish = {"max_tokens": 6, "ignore_eos": True, "prompt": PROMPT, "temperature": 0}
    async with replica(settings(tiny_model)) as here:
        whole = await chunks_of(here, TEXT, **wish)
        finish, usage = await chunks_of(here, TEXT, **wish, resume=resume(whole[:-1]))
        assert here.service.steps.queues()[:2] == (0, 0)
    assert finish["choices"][0]["finish_reason"] == "length"
    assert (finish["choices"][0]["text"], finish["choices"][0]["token_ids"]) == ("", [])
    assert usage_of([usage]) == usage_of(whole)


async def test_a_whole_answer_that_is_resumed_has_all_of_it(tiny_model: Path) -> None:
    wish = {"max_tokens": 9, "ignore_eos": True, "temperature": 1, "seed": 3, "return_token_ids": True}
    async with replica(settings(tiny_model)) as here:
        [whole] = (await here.complete(PROMPT, **wish))[1]["choices"]
        known = {"prompt_token_ids": whole["prompt_token_ids"], "token_ids": whole["token_ids"][:4]}
        [again] = (await here.complete(PROMPT, **wish, resume=known))[1]["choices"]
    assert again == whole
