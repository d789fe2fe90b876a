"""What one request may ask for beyond one plain text."""

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.engine.replica import events, replica, settings

CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"
SAY = {"model": "tiny", "messages": [{"role": "user", "content": "the tin"}], "max_tokens": 6, "ignore_eos": True}


async def streamed(here: Any, path: str = TEXT, **wish: Any) -> list[Any]:
    async with here.session.post(here.base + path, json={"model": "tiny", "stream": True, **wish}) as answer:
        assert answer.status == 200, await answer.text()
        *chunks, done = await events(answer)
    assert done == "[DONE]"
    return chunks


def by_choice(chunks: list[Any]) -> dict[int, str]:
    texts: dict[int, str] = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            texts[choice["index"]] = texts.get(choice["index"], "") + choice["text"]
    return texts


async def test_choices_of_one_seed_are_those_of_the_seeds_behind_it(tiny_model: Path) -> None:
    wish = {"temperature": 1, "max_tokens": 8, "ignore_eos": True}
    async with replica(settings(tiny_model)) as here:
        _, body, _ = await here.complete(n=3, seed=7, **wish)
        alone = [(await here.complete(seed=seed, **wish))[1]["choices"][0]["text"] for seed in (7, 8, 9)]
        chunks = await streamed(here, prompt="the tin can", n=3, seed=7, **wish)
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]
    assert [choice["text"] for choice in body["choices"]] == alone
    assert by_choice(chunks) == dict(enumerate(alone))
    assert body["usage"] == {
        "prompt_tokens": 6,
        "completion_tokens": 24,
        "total_tokens": 30,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


@pytest.mark.parametrize("prompts", [["the", "tin can"], [[5, 6], [7, 8, 9]]], ids=str)
async def test_several_prompts_are_answered_in_their_order(prompts: list[Any], tiny_model: Path) -> None:
    wish = {"max_tokens": 5, "ignore_eos": True, "n": 2, "seed": 1, "temperature": 1}
    async with replica(settings(tiny_model)) as here:
        _, body, _ = await here.complete(prompts, return_token_ids=True, **wish)
        alone = [(await here.complete(prompt, **wish))[1] for prompt in prompts]
    wanted = [choice["text"] for answer in alone for choice in answer["choices"]]
    assert [choice["text"] for choice in body["choices"]] == wanted
    assert body["usage"]["prompt_tokens"] == sum(answer["usage"]["prompt_tokens"] for answer in alone)
    assert len({tuple(choice["prompt_token_ids"]) for choice in body["choices"]}) == 2


async def test_more_choices_than_have_room_are_sent_elsewhere(tiny_model: Path) -> None:
    async with replica(settings(tiny_model, max_running=2, max_waiting=1), paced=True) as here:
        first = asyncio.create_task(here.complete("a", n=2, max_tokens=2))
        await here.until(lambda: len(here.service._answers) == 2)
        status, body, headers = await here.complete(n=2)
        here.pace.free()
        assert (await first)[0] == 200
    assert (status, body["error"]["code"], headers["Retry-After"]) == (503, "queue_full", "1")


@pytest.mark.parametrize("count", [0, 3])
async def test_logprobs_of_a_completion(count: int, tiny_model: Path) -> None:
    wish = {"max_tokens": 6, "ignore_eos": True, "logprobs": count}
    async with replica(settings(tiny_model)) as here:
        [choice] = (await here.complete(return_token_ids=True, **wish))[1]["choices"]
        chunks = await streamed(here, prompt="the tin can", temperature=0, **wish)
        words = [
            here.service.loaded.tokenizer.bytes_of(token).decode(errors="replace") for token in choice["token_ids"]
        ]
    found = choice["logprobs"]
    assert found["tokens"] == words
    assert found["text_offset"][0] == 0
    assert [later - before for before, later in pairwise(found["text_offset"])] == [len(word) for word in words[:-1]]
    for word, logprob, best in zip(words, found["token_logprobs"], found["top_logprobs"], strict=True):
        assert best[word] == logprob == max(best.values())  # greedy: the chosen one is the best
        assert len(best) == max(1, count) or "\N{REPLACEMENT CHARACTER}" in best
    parts = [chunk["choices"][0]["logprobs"] for chunk in chunks]
    for name in ("tokens", "token_logprobs", "text_offset"):
        assert [one for part in parts if part for one in part[name]] == found[name]


async def test_logprobs_of_a_chat(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        _, body, _ = await here.call("POST", CHAT, {**SAY, "temperature": 0, "logprobs": True, "top_logprobs": 2})
        _, plain, _ = await here.call("POST", CHAT, {**SAY, "temperature": 0})
    content = body["choices"][0]["logprobs"]["content"]
    assert len(content) == 6
    for told in content:
        assert len(told["top_logprobs"]) == 2
        assert {name: told[name] for name in ("token", "logprob", "bytes")} == told["top_logprobs"][0]
    raw = b"".join(bytes(told["bytes"]) for told in content)
    assert raw.decode(errors="replace") == body["choices"][0]["message"]["content"]
    assert plain["choices"][0]["logprobs"] is None


async def test_an_echo_begins_with_the_prompt(tiny_model: Path) -> None:
    wish = {"max_tokens": 5, "ignore_eos": True}
    async with replica(settings(tiny_model)) as here:
        plain = (await here.complete(**wish))[1]["choices"][0]["text"]
        _, body, _ = await here.complete(echo=True, **wish)
        chunks = await streamed(here, prompt="the tin can", echo=True, temperature=0, **wish)
    assert body["choices"][0]["text"] == "the tin can" + plain
    assert by_choice(chunks) == {0: "the tin can" + plain}


async def test_usage_comes_with_each_chunk_if_it_is_wanted(tiny_model: Path) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    async with replica(settings(tiny_model)) as here:
        chunks = await streamed(here, prompt="a", max_tokens=4, ignore_eos=True, stream_options=options)
    counts = [chunk["usage"]["completion_tokens"] for chunk in chunks]
    assert counts == sorted(counts)
    assert counts[-1] == 4
    assert chunks[-1]["choices"] == []


async def test_what_stopped_an_answer_is_told(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        _, whole, _ = await here.complete(max_tokens=20, ignore_eos=True, return_token_ids=True)
        [choice] = whole["choices"]
        stop, third = choice["text"][6:8], choice["token_ids"][2]
        [by_text] = (await here.complete(max_tokens=20, ignore_eos=True, stop=stop))[1]["choices"]
        wish = {"max_tokens": 20, "ignore_eos": True, "include_stop_str_in_output": True}
        [shown] = (await here.complete(stop=stop, **wish))[1]["choices"]
        [by_token] = (await here.complete(max_tokens=20, stop_token_ids=[third]))[1]["choices"]
    assert (by_text["finish_reason"], by_text["stop_reason"]) == ("stop", stop)
    assert shown["text"] == by_text["text"] + stop
    assert by_token["stop_reason"] == third
    assert choice["stop_reason"] is None


async def test_a_bias_and_a_least_length_are_kept(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        wish = {"return_token_ids": True, "max_tokens": 6, "logit_bias": {"0": 100}}
        [at_once] = (await here.complete(**wish))[1]["choices"]
        [later] = (await here.complete(min_tokens=3, **wish))[1]["choices"]
    assert at_once["token_ids"] == [0]
    assert (len(later["token_ids"]), later["token_ids"][-1]) == (4, 0)


async def test_tokenize_and_detokenize_are_each_other_s_way_back(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        _, body, _ = await here.call("POST", "/tokenize", {"prompt": "the tin", "return_token_strs": True})
        _, back, _ = await here.call("POST", "/detokenize", {"model": "tiny", "tokens": body["tokens"]})
        _, chat, _ = await here.call("POST", "/tokenize", {"messages": SAY["messages"]})
        _, answer, _ = await here.call("POST", CHAT, {**SAY, "return_token_ids": True})
        status, neither, _ = await here.call("POST", "/tokenize", {})
    assert back == {"prompt": "the tin"}
    assert (body["count"], body["max_model_len"], len(body["token_strs"])) == (len(body["tokens"]), 256, body["count"])
    assert chat["tokens"] == answer["prompt_token_ids"]
    assert (status, neither["error"]["param"]) == (400, "prompt")


async def test_the_version_is_told(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        status, body, _ = await here.call("GET", "/version")
    assert (status, list(body)) == (200, ["version"])


@pytest.mark.parametrize(
    ("method", "path", "size", "status", "code"),
    [
        ("GET", "/v1/embeddings", 0, 404, "not_found"),
        ("GET", "/v1/completions", 0, 405, "method_not_allowed"),
        ("GET", "/v1/models/other", 0, 404, "model_not_found"),
        ("POST", "/v1/completions", 17 * 2**20, 413, None),
    ],
)
async def test_every_failure_has_the_form_of_openai(
    method: str, path: str, size: int, status: int, code: str | None, tiny_model: Path
) -> None:
    async with replica(settings(tiny_model)) as here:
        found, body, headers = await here.call(method, path, b"x" * size or None)
    assert found == status
    assert headers["Content-Type"].startswith("application/json")
    assert set(body) == {"error"}
    assert body["error"]["type"] == "invalid_request_error"
    assert code is None or body["error"]["code"] == code
    assert body["error"]["message"]


async def test_a_missing_token_is_told_in_the_same_form(tiny_model: Path) -> None:
    async with replica(settings(tiny_model), token="secret") as here:
        status, body, headers = await here.complete()
    assert (status, body["error"]["type"], headers["WWW-Authenticate"]) == (401, "authentication_error", "Bearer")


@pytest.mark.parametrize("path", ["/health", "/ready", "/metrics", "/tokenize"])
async def test_a_step_that_takes_long_delays_nobody(path: str, tiny_model: Path) -> None:
    async with replica(settings(tiny_model), paced=True) as here:
        answer = asyncio.create_task(here.complete("a", max_tokens=3))
        here.pace.allow(1)
        await here.until(lambda: len(here.pace.steps) == 1)
        method = "POST" if path == "/tokenize" else "GET"
        status, _, _ = await here.call(method, path, {"prompt": "a"} if method == "POST" else None)
        assert status == 200
        assert not answer.done()  # its second step hangs all the while
        here.pace.free()
        assert (await answer)[0] == 200


async def test_json_numbers_of_logprobs_are_finite(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        _, body, _ = await here.complete(logprobs=20, max_tokens=3)
    assert "null" not in json.dumps(body["choices"][0]["logprobs"]["token_logprobs"])
