import asyncio
import importlib.util
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.api import grammar, matcher
from engine.api.grammar import Grammars
from engine.api.matcher import Matcher, Shape
from engine.api.requests import BadRequest
from engine.core.sequence import Sampling, Sequence
from engine.loading import Loaded, load_model
from tests.engine.core.test_runner import generate
from tests.engine.replica import events, replica, settings

if importlib.util.find_spec("xgrammar") is None and os.environ.get("CI") != "true":
    pytest.skip("no xgrammar here: pip install 'corral[grammar]'", allow_module_level=True)

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["red", "blue"]}, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> Loaded:
    return load_model(settings(tiny_model))


def shaped(model: Loaded, shape: Shape, seed: int, most: int = 120) -> tuple[str, bool]:
    """(the text of one answer at a high temperature, whether it came to its own end)."""
    compiled = asyncio.run(Grammars(model).compile(shape))
    rule = Sampling(max_tokens=most, temperature=1.0, seed=seed, stop_ids=model.eos_ids)
    one = Sequence("a", [5, 6, 7], rule, 0.0, grammar=Matcher(compiled, rule.stop_ids))
    [tokens] = generate(model, [one])
    return model.tokenizer.decode(tokens), tokens[-1] in model.eos_ids


@pytest.mark.parametrize("seed", range(5))
def test_an_answer_follows_its_schema(seed: int, model: Loaded) -> None:
    text, ended = shaped(model, Shape("json", json.dumps(PERSON)), seed)
    assert ended
    found = json.loads(text)
    assert list(found) == ["name", "age", "tags"]
    assert 0 <= found["age"] <= 150
    assert set(found["tags"]) <= {"red", "blue"}


def test_an_answer_follows_an_expression(model: Loaded) -> None:
    text, ended = shaped(model, Shape("regex", "[a-c]{3}-[0-9]{2}"), 3)
    assert ended
    assert re.fullmatch("[a-c]{3}-[0-9]{2}", text)


def test_an_answer_is_one_of_the_choices(model: Loaded) -> None:
    texts = {shaped(model, Shape("choice", json.dumps(['a "b"\n', "東", "c"])), seed) for seed in range(12)}
    assert {text for text, _ in texts} <= {'a "b"\n', "東", "c"}
    assert len(texts) > 1


def test_an_answer_follows_a_grammar(model: Loaded) -> None:
    text, _ = shaped(model, Shape("grammar", 'root ::= "x" root | "y"'), 1, most=200)
    assert re.fullmatch("x*y", text)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (Shape("json", "{"), "the json cannot be followed"),
        (Shape("json", '{"type": "nonsense"}'), "the json cannot be followed"),
        (Shape("regex", "(a"), "the regex cannot be followed"),
        (Shape("grammar", "root ::= other"), "the grammar cannot be followed"),
        (Shape("json", '{"items":' * 65 + "1" + "}" * 65), "deeper than 64 levels"),
        (Shape("grammar", "x" * grammar.MAX_BYTES + "x"), "more than 65536 bytes"),
    ],
)
async def test_what_cannot_be_followed_is_the_fault_of_the_request(shape: Shape, words: str, model: Loaded) -> None:
    with pytest.raises(BadRequest, match=words):
        await Grammars(model).compile(shape)


def test_text_of_a_bounded_length_has_no_control_characters(model: Loaded) -> None:
    schema = json.dumps({"type": "string", "minLength": 30, "maxLength": 30})
    text, ended = shaped(model, Shape("json", schema), 4, most=200)
    assert ended
    assert len(json.loads(text)) >= 15  # an astral letter may be written as two escapes


async def test_what_takes_too_long_is_the_fault_of_the_request(model: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "COMPILE_S", 0.0)
    with pytest.raises(BadRequest, match="takes more than 0 s"):
        await Grammars(model).compile(Shape("regex", "[a-z]{1,900}"))


async def test_without_the_package_it_is_said_what_to_install(model: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "PACKAGE", "no_such_package")
    with pytest.raises(BadRequest, match=r"pip install 'corral\[grammar\]'"):
        await Grammars(model).compile(Shape("regex", "a"))


def test_special_tokens_stand_for_no_text(model: Loaded) -> None:
    compiled = asyncio.run(Grammars(model).compile(Shape("regex", r"<\|im_end\|>.{3}")))
    rule = Sampling(max_tokens=30, temperature=1.0, stop_ids=model.eos_ids)
    one = Sequence("a", [5], rule, 0.0, grammar=Matcher(compiled, rule.stop_ids))
    [tokens] = generate(model, [one])
    assert not {1, 2} & set(tokens)


ASK: dict[str, Any] = {"max_tokens": 100, "temperature": 1, "seed": 3}


@pytest.mark.parametrize(
    "form",
    [
        {"response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}},
        {"structured_outputs": {"json": PERSON}},
        {"guided_json": json.dumps(PERSON)},
    ],
    ids=str,
)
async def test_every_name_of_a_form_asks_for_it(form: dict[str, Any], tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        status, body, _ = await here.complete(**ASK, **form)
    assert status == 200
    assert json.loads(body["choices"][0]["text"])["age"] >= 0


async def test_a_form_is_kept_where_an_answer_is_resumed(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        form = {"guided_json": PERSON, "return_token_ids": True, **ASK}
        [whole] = (await here.complete(**form))[1]["choices"]
        resume = {"prompt_token_ids": whole["prompt_token_ids"], "token_ids": whole["token_ids"][:7]}
        [again] = (await here.complete(**form, resume=resume))[1]["choices"]
    assert again == whole


async def test_several_choices_each_keep_their_own_place(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        _, body, _ = await here.complete(n=3, guided_json=PERSON, **ASK)
    texts = [choice["text"] for choice in body["choices"]]
    assert all(json.loads(text) for text in texts)
    assert len(set(texts)) == 3


AMBIGUOUS = {"guided_grammar": 'root ::= root root | "a"', "max_tokens": 60, "min_tokens": 60}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_form_that_takes_too_long_to_follow_is_refused_and_holds_nobody_up(
    stream: bool, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matcher, "CREDIT_S", 10.5)
    monkeypatch.setattr(matcher, "EARNED_S", -1.0)  # as if each token took a second: over its budget at the 11th
    async with replica(settings(tiny_model)) as here:
        other = asyncio.create_task(here.complete("the tin", max_tokens=40, ignore_eos=True))
        body = {"model": "tiny", "prompt": "the tin can", "temperature": 0, "stream": stream, **AMBIGUOUS}
        async with here.session.post(f"{here.base}/v1/completions", json=body) as answer:
            assert answer.status == (200 if stream else 400)  # the head of a stream goes out with its first token
            last = (await events(answer))[-1] if stream else await answer.json()
        assert (last["error"]["code"], last["error"]["type"]) == ("form_too_slow", "invalid_request_error")
        status, again, _ = await here.complete("the tin can", **AMBIGUOUS)
        assert (status, again["error"]["code"]) == (400, "form_too_slow")
        assert (await other)[0] == 200
        await here.until(lambda: here.service.steps.queues()[:2] == (0, 0))
        assert here.service.failed == 0  # no fault of the replica's


async def test_a_form_spends_processor_time_and_is_then_not_taken_again(
    model: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matcher, "CREDIT_S", 0.0)
    shape, grammars = Shape("regex", "a{9}"), Grammars(model)
    one = Matcher(await grammars.compile(shape), frozenset(model.eos_ids))
    one.fill(torch.zeros(1, -(-model.vocab // 32), dtype=torch.int32), 0)
    assert one.spent
    with pytest.raises(BadRequest, match="takes too long to follow"):
        await grammars.compile(shape)


def test_each_token_earns_time_so_a_long_answer_in_a_usual_form_is_never_over_its_budget(model: Loaded) -> None:
    compiled = asyncio.run(Grammars(model).compile(Shape("regex", "a{300}")))
    one = Matcher(compiled, frozenset(model.eos_ids))
    [letter] = model.tokenizer.encode("a", special=False)
    for _ in range(300):
        one.accept(letter)
    assert not one.spent
