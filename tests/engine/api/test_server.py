import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.engine.replica import events, replica, settings


async def stream(here: Any, path: str = "/v1/completions", **wish: Any) -> list[Any]:
    body = {"model": "tiny", "temperature": 0, "stream": True, **wish}
    async with here.session.post(here.base + path, json=body) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        return await events(answer)


async def test_a_completion_in_the_form_of_the_openai_api(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        status, body, _ = await here.complete("the tin can", max_tokens=5, ignore_eos=True)
    assert status == 200
    assert body["object"] == "text_completion"
    assert body["model"] == "tiny"
    [choice] = body["choices"]
    assert choice["finish_reason"] == "length"
    assert isinstance(choice["text"], str)
    assert body["usage"]["completion_tokens"] == 5
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + 5


async def test_a_stream_is_the_same_answer_in_pieces(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        _, whole, _ = await here.complete(max_tokens=20, ignore_eos=True, return_token_ids=True)
        chunks = await stream(here, prompt="the tin can", max_tokens=20, ignore_eos=True, return_token_ids=True,
                              stream_options={"include_usage": True})  # fmt: skip
    *parts, usage, done = chunks
    assert done == "[DONE]"
    assert "".join(part["choices"][0]["text"] for part in parts) == whole["choices"][0]["text"]
    ids = [token for part in parts for token in part["choices"][0]["token_ids"]]
    assert ids == whole["choices"][0]["token_ids"]
    assert len(ids) == 20
    assert parts[0]["choices"][0]["prompt_token_ids"] == whole["choices"][0]["prompt_token_ids"]
    assert [part["choices"][0]["finish_reason"] for part in parts][-1] == "length"
    assert (usage["choices"], usage["usage"]) == ([], whole["usage"])
    assert len({part["id"] for part in parts}) == 1


async def test_a_chat_uses_the_model_s_template(tiny_model: Path) -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "the "}, {"type": "text", "text": "tin"}]}]
    async with replica(settings(tiny_model)) as here:
        wish = {"model": "tiny", "messages": messages, "max_completion_tokens": 4, "temperature": 0,
                "return_token_ids": True, "ignore_eos": True}  # fmt: skip
        _, body, _ = await here.call("POST", "/v1/chat/completions", wish)
        chunks = await stream(here, "/v1/chat/completions", **wish)
        prompt = here.service.loaded.tokenizer.encode(
            "<|im_start|>user\nthe tin<|im_end|>\n<|im_start|>assistant\n", special=False
        )
    assert body["object"] == "chat.completion"
    assert body["prompt_token_ids"] == prompt
    assert body["choices"][0]["message"]["role"] == "assistant"
    assert chunks[0]["object"] == "chat.completion.chunk"
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    content = "".join(chunk["choices"][0]["delta"]["content"] for chunk in chunks[:-1])
    assert content == body["choices"][0]["message"]["content"]


async def test_a_prompt_of_token_ids_continues_where_a_text_was(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        _, whole, _ = await here.complete(max_tokens=12, ignore_eos=True, return_token_ids=True)
        ids = whole["choices"][0]["token_ids"]
        _, rest, _ = await here.complete(
            whole["choices"][0]["prompt_token_ids"] + ids[:5], max_tokens=7, ignore_eos=True, return_token_ids=True
        )
    assert rest["choices"][0]["token_ids"] == ids[5:]


async def test_a_stop_string_ends_an_answer_and_is_not_shown(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        _, whole, _ = await here.complete(max_tokens=30, ignore_eos=True)
        text = whole["choices"][0]["text"]
        stop = text[len(text) // 2 :][:2]
        _, cut, _ = await here.complete(max_tokens=30, ignore_eos=True, stop=[stop])
        await here.until(lambda: here.service.steps.queues()[0] == 0)
    assert cut["choices"][0]["finish_reason"] == "stop"
    assert cut["choices"][0]["text"] == text.partition(stop)[0]


async def test_a_stop_token_ends_an_answer(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        _, whole, _ = await here.complete(max_tokens=10, ignore_eos=True, return_token_ids=True)
        third = whole["choices"][0]["token_ids"][2]
        _, cut, _ = await here.complete(max_tokens=10, stop_token_ids=[third], return_token_ids=True)
    assert cut["choices"][0]["finish_reason"] == "stop"
    assert cut["choices"][0]["token_ids"][-1] == third


async def test_requests_at_the_same_time_get_what_each_gets_alone(tiny_model: Path) -> None:
    prompts = [[3 + number] * (number * 9 + 1) for number in range(8)]
    async with replica(settings(tiny_model)) as here:
        alone = [(await here.complete(prompt, max_tokens=10, ignore_eos=True))[1] for prompt in prompts]
        together = await asyncio.gather(*(here.complete(prompt, max_tokens=10, ignore_eos=True) for prompt in prompts))
    assert [body["choices"] for _, body, _ in together] == [body["choices"] for body in alone]


async def test_the_model_is_listed_under_its_served_name(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        _, body, _ = await here.call("GET", "/v1/models")
    assert [(model["id"], model["max_model_len"]) for model in body["data"]] == [("tiny", 256)]


CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"
ASK = {"model": "tiny", "prompt": "a"}
SAY = {"model": "tiny", "messages": [{"role": "user", "content": "a"}]}


@pytest.mark.parametrize(
    ("path", "body", "status", "param", "words"),
    [
        (TEXT, b"{", 400, None, "not JSON"),
        (TEXT, b"", 400, None, "Expected `object`"),
        (TEXT, {"prompt": "a"}, 400, None, "missing required field `model`"),
        (TEXT, {"model": "other", "prompt": "a"}, 404, "model", "'other' is not served here"),
        (TEXT, {**ASK, "temperature": "hot"}, 400, "temperature", "Expected `float"),
        (TEXT, {**ASK, "temperature": -1}, 400, "temperature", ">= 0"),
        (TEXT, {**ASK, "top_p": 0}, 400, "top_p", "> 0"),
        (TEXT, {**ASK, "max_tokens": 0}, 400, "max_tokens", ">= 1"),
        (TEXT, {**ASK, "n": 0}, 400, "n", ">= 1"),
        (TEXT, {**ASK, "n": 81}, 400, "n", "at most 80 fit"),
        (TEXT, {**ASK, "n": 2, "best_of": 3}, 400, "best_of", "make it equal to n"),
        (TEXT, {**ASK, "logprobs": 21}, 400, "logprobs", "<= 20"),
        (TEXT, {**ASK, "logprobs": 1, "echo": True}, 400, "echo", "not supported"),
        (TEXT, {**ASK, "suffix": "b"}, 400, "suffix", "does not support"),
        (TEXT, {**ASK, "bad_words": ["b"]}, 400, "bad_words", "does not support"),
        (TEXT, {**ASK, "presence_penalty": 2.5}, 400, "presence_penalty", "<= 2"),
        (TEXT, {**ASK, "repetition_penalty": 0}, 400, "repetition_penalty", "> 0"),
        (TEXT, {**ASK, "logit_bias": {"272": 1}}, 400, "logit_bias", "outside of 0 to 271"),
        (TEXT, {**ASK, "logit_bias": {"2": 101}}, 400, "logit_bias[...]", "<= 100"),
        (TEXT, {**ASK, "min_tokens": 17}, 400, "min_tokens", "more than the 16"),
        (TEXT, {**ASK, "stop_token_ids": [999]}, 400, "stop_token_ids", "outside of"),
        (TEXT, {**ASK, "prompt": ["a", 5]}, 400, "prompt", "not both"),
        (TEXT, {**ASK, "n": 2, "resume": {"prompt_token_ids": [5], "token_ids": [6]}}, 400, "resume", "one choice"),
        (TEXT, {**ASK, "resume": {"prompt_token_ids": [5], "token_ids": [-6]}}, 400, "resume", "outside of"),
        (TEXT, {**ASK, "guided_json": {}, "guided_regex": "a"}, 400, "response_format", "not for several"),
        (TEXT, {**ASK, "stop": [""]}, 400, "stop", "must not be empty"),
        (TEXT, {**ASK, "prompt": ""}, 400, "prompt", "the prompt is empty"),
        (TEXT, {**ASK, "prompt": []}, 400, "prompt", "the prompt is empty"),
        (TEXT, {**ASK, "prompt": [1, 272]}, 400, "prompt", "outside of 0 to 271"),
        (TEXT, {**ASK, "prompt": [-1]}, 400, "prompt", "outside of 0 to 271"),
        (TEXT, {**ASK, "prompt": [5] * 256}, 400, "prompt", "context is 256 tokens and the prompt has 256"),
        (TEXT, {**ASK, "prompt": "a" * 300}, 400, "prompt", "the prompt has 300"),
        (TEXT, {**ASK, "prompt": "a" * 100_000}, 400, "prompt", "at least 8333"),
        (TEXT, {**ASK, "max_tokens": 256}, 400, "max_tokens", "leave 255, not 256"),
        (CHAT, {**SAY, "messages": []}, 400, "messages", "length >= 1"),
        (CHAT, {**SAY, "messages": [{"content": "a"}]}, 400, "messages[0]", "missing required field `role`"),
        (CHAT, {**SAY, "tool_choice": "required"}, 400, "tool_choice", "does not support"),
        (CHAT, {**SAY, "functions": [{"name": "f"}]}, 400, "functions", "does not support"),
        (CHAT, {**SAY, "top_logprobs": 2}, 400, "top_logprobs", "needs logprobs"),
        (CHAT, {**SAY, "response_format": {"type": "xml"}}, 400, "response_format", "json_object"),
        (CHAT, {**SAY, "response_format": {"type": "json_schema"}}, 400, "response_format", "with its schema"),
        (
            CHAT,
            {**SAY, "messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}]},
            400,
            "messages[0].tool_calls",
            "must be JSON",
        ),
        (
            CHAT,
            {**SAY, "messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            400,
            "messages[0].content",
            "only text",
        ),
    ],
)
async def test_a_bad_request_is_told_what_is_wrong(
    path: str, body: Any, status: int, param: str | None, words: str, tiny_model: Path
) -> None:
    async with replica(settings(tiny_model)) as here:
        found, answer, _ = await here.call("POST", path, body)
        assert here.service.gate.open_requests == 0
    error = answer["error"]
    assert (found, error["type"], error["param"]) == (status, "invalid_request_error", param), error
    assert words in error["message"]


@pytest.mark.parametrize(
    "wish",
    [
        {"n": 1, "best_of": 1, "presence_penalty": 0, "frequency_penalty": 0.0, "logit_bias": {}, "echo": False},
        {"stop": None, "seed": None, "top_p": None, "top_k": -1, "stream": None, "stream_options": None},
        {"user": "someone", "metadata": {"a": "b"}, "service_tier": "auto"},
        {"prompt": ["one"]},
        {"skip_special_tokens": True, "bad_words": [], "response_format": {"type": "text"}, "prompt_logprobs": None},
    ],
)
async def test_what_asks_for_nothing_is_no_hindrance(wish: dict[str, Any], tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        status, body, _ = await here.call("POST", TEXT, {**ASK, **wish})
    assert status == 200, body


async def test_a_seed_repeats_an_answer(tiny_model: Path) -> None:
    wish = {"temperature": 1.0, "max_tokens": 12, "ignore_eos": True}
    async with replica(settings(tiny_model)) as here:
        texts = [(await here.complete(seed=seed, **wish))[1]["choices"][0]["text"] for seed in (4, 4, 5)]
    assert texts[0] == texts[1] != texts[2]


async def test_too_many_requests_are_sent_elsewhere(tiny_model: Path) -> None:
    async with replica(settings(tiny_model, max_running=1, max_waiting=1), paced=True) as here:
        first, second = (asyncio.create_task(here.complete(max_tokens=2)) for _ in range(2))
        await here.until(lambda: here.service.gate.open_requests == 2)
        status, body, headers = await here.complete()
        here.pace.free()
        assert [(await task)[0] for task in (first, second)] == [200, 200]
        _, text, _ = await here.call("GET", "/metrics")
    assert (status, body["error"]["code"], headers["Retry-After"]) == (503, "queue_full", "1")
    assert b'vllm:admission_rejections_total{model_name="tiny",reason="max_num_queued_reqs"} 1.0' in text


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_client_that_goes_away_frees_its_blocks(streamed: bool, tiny_model: Path) -> None:
    async with replica(settings(tiny_model), paced=True) as here:
        pool = here.service.loaded.scheduler.pool
        task = asyncio.create_task(stream(here, prompt="a", max_tokens=200) if streamed else here.complete("a"))
        here.pace.allow(3)
        await here.until(lambda: len(here.pace.steps) == 3)
        assert pool.free < pool.count
        task.cancel()
        await here.until(lambda: here.service.gate.open_requests == 0)
        here.pace.free()
        await here.until(lambda: pool.free == pool.count)
        _, text, _ = await here.call("GET", "/metrics")
    assert b'vllm:request_success_total{engine="0",finished_reason="abort",model_name="tiny"} 1.0' in text
    assert (here.service.ok, here.service.failed) == (0, 0)


async def test_a_token_is_asked_for_when_there_is_one(tiny_model: Path) -> None:
    async with replica(settings(tiny_model), token="secret") as here:
        assert (await here.complete())[0] == 401
        assert (await here.call("GET", "/ready"))[0] == 200
        wish = {"model": "tiny", "prompt": "a"}
        assert (await here.call("POST", TEXT, wish, Authorization="Bearer secret"))[0] == 200
