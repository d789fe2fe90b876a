"""What a request can ask, of the real model: forms that parse, bytes that join, streams that resume."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from engine.loading import Loaded, load_model
from engine.text.tokenizer import Tokenizer
from tests.engine.replica import Replica, events, replica, settings

pytestmark = pytest.mark.e2e

CHAT = "/v1/chat/completions"
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 30},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "hobbies": {"type": "array", "items": {"type": "string", "maxLength": 20}, "minItems": 1, "maxItems": 3},
    },
    "required": ["name", "age", "hobbies"],
    "additionalProperties": False,
}
FORM = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}


SETTINGS = settings(Path("smollm2"), model="smollm2", kv_mib=128)


@pytest.fixture(scope="module")
def model() -> Loaded:
    return load_model(SETTINGS)


@pytest.fixture
async def here(model: Loaded) -> AsyncIterator[Replica]:
    async with replica(SETTINGS, given=model) as one:
        yield one


def say(text: str, **wish: Any) -> dict[str, Any]:
    return {"model": "tiny", "messages": [{"role": "user", "content": text}], **wish}


async def test_an_answer_in_a_form_always_parses(here: Replica) -> None:
    asks = [
        say("Describe a person as JSON.", response_format=FORM, max_tokens=150, temperature=temperature, seed=seed)
        for seed, temperature in enumerate((0, 1, 2))
    ]
    answers = await asyncio.gather(*(here.call("POST", CHAT, ask) for ask in asks))
    for status, body, _ in answers:
        assert status == 200, body
        [choice] = body["choices"]
        assert choice["finish_reason"] == "stop"
        found = json.loads(choice["message"]["content"])
        assert set(found) == {"name", "age", "hobbies"}
        assert 0 <= found["age"] <= 150


async def test_a_sampled_stream_resumed_in_the_middle_is_the_same(here: Replica) -> None:
    ask = say("Tell a short story.", max_tokens=40, seed=11, temperature=0.9, frequency_penalty=0.5, stream=True,
              return_token_ids=True)  # fmt: skip

    async def told(**more: Any) -> list[Any]:
        async with here.session.post(here.base + CHAT, json={**ask, **more}) as answer:
            return (await events(answer))[:-1]

    whole = await told()
    first = whole[:9]
    tokens = [token for chunk in first for token in chunk["choices"][0]["token_ids"]]
    rest = await told(resume={"prompt_token_ids": whole[0]["prompt_token_ids"], "token_ids": tokens})

    def text(chunks: list[Any]) -> str:
        return "".join(chunk["choices"][0]["delta"]["content"] for chunk in chunks)

    assert text(first) + text(rest) == text(whole)


async def test_pieces_of_text_are_those_of_the_tokenizer(here: Replica) -> None:
    assert here.service.loaded is not None
    tokens: Tokenizer = here.service.loaded.tokenizer
    text = "Grüße 東京 🌞 naïve\n\tdef f(x):  # tabs"
    ids = tokens.encode(text, special=False)
    stream = tokens.stream()
    assert "".join([*(stream.push(token) for token in ids), stream.flush()]) == text == tokens.decode(ids)
    odd = list(range(0, tokens.vocab, 97))
    stream = tokens.stream()
    assert "".join([*(stream.push(token) for token in odd), stream.flush()]) == tokens.decode(odd)
