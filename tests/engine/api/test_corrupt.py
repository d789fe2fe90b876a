"""A request whose numbers are none keeps that to itself: beside it, after it in its blocks, with its prefix."""

from pathlib import Path

import pytest

from engine.core.sequence import Sampling, Sequence
from engine.loading import Loaded, load_model
from tests.engine.core.test_runner import generate, wish
from tests.engine.health.made import weights_of
from tests.engine.replica import settings

BROKEN = 7  # the token whose embedding is no number
PROMPT = [BROKEN, *range(20, 60)]


@pytest.fixture
def model(tiny_model: Path) -> Loaded:
    return load_model(settings(tiny_model, max_running=3, max_model_len=64))  # 12 blocks


def poison(model: Loaded, value: float) -> None:
    """Now each request with this token in its prompt has no numbers behind it, and no other."""
    weights_of(model)["embed"][BROKEN] = value


def broken(name: str = "broken", most: int = 12) -> Sequence:
    return Sequence(name, PROMPT, Sampling(max_tokens=most), 0.0)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_who_gets_its_blocks_next_gets_the_right_answer(value: float, model: Loaded) -> None:
    expected = generate(model, [wish("before", 33)])
    assert BROKEN not in expected[0]
    poison(model, value)
    for number in range(6):  # until every block was in its hands
        one = broken(f"broken {number}")
        generate(model, [one])
        assert one.corrupt
    assert generate(model, [wish(f"after {number}", 33) for number in range(3)]) == expected * 3


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_those_beside_it_get_the_right_answer(value: float, model: Loaded) -> None:
    expected = [generate(model, [wish("alone", length)])[0] for length in (30, 45)]
    poison(model, value)
    model.scheduler.pool._free.move_to_end(0, last=False)  # what fills up short tables
    _, *found = generate(model, [broken(), wish("short", 30), wish("long", 45)])
    assert found == expected


def test_nobody_finds_its_prefix(model: Loaded, tiny_model: Path) -> None:
    expected = generate(load_model(settings(tiny_model)), [broken("right", 3)])
    kept = weights_of(model)["embed"][BROKEN].clone()
    poison(model, float("nan"))
    generate(model, [broken()])
    weights_of(model)["embed"][BROKEN] = kept
    assert generate(model, [broken("again", 3)]) == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_who_is_cancelled_in_the_middle_of_its_prompt_leaves_nothing_either(value: float, model: Loaded) -> None:
    expected = generate(model, [wish("before", 33)])
    poison(model, value)
    model.scheduler.step_tokens = 18
    for number in range(6):
        one = broken(f"broken {number}")
        model.scheduler.add(one)
        step = model.scheduler.schedule()
        assert step is not None
        assert not any(span.samples for span in step.spans)
        model.scheduler.settle(step, model.runner.run(step))
        assert one.corrupt
        assert model.scheduler.cancel(one.id) is one
    model.scheduler.step_tokens = 128
    assert generate(model, [wish(f"after {number}", 33) for number in range(3)]) == expected * 3


def test_a_canary_that_got_no_numbers_leaves_none_behind(model: Loaded) -> None:
    assert model.canary is not None
    weight = weights_of(model)["0.down"]
    kept = weight.clone()
    weight[0] = float("nan")
    for _ in range(4):
        assert model.canary.whole().outcome.is_wrong
    weight.copy_(kept)
    assert [model.canary.whole().outcome.value for _ in range(3)] == ["passed"] * 3
