"""What a million tokens cost: the price of the GPUs over the bounds of what they do."""

import json

import pytest
from click.testing import CliRunner

from corral.commands.plan import command
from corral.plan_cost import cost
from engine.capacity import Wish, plan
from engine.known_shapes import KNOWN
from vocab.catalogue.specs import spec_named

L40S = spec_named("L40S")
assert L40S is not None
WISH = Wish(context=4096, dtype="fp16", kv_dtype="fp16")
PLAN = plan(KNOWN["llama-2-7b"], L40S, WISH)


def test_output_of_all_requests_is_the_price_of_a_second_over_its_tokens() -> None:
    found = cost(PLAN, WISH, 3.6)
    assert PLAN.full_tokens_per_s is not None
    assert found.output == pytest.approx(0.001 / PLAN.full_tokens_per_s * 1e6)
    assert found.output_alone is not None
    assert found.output is not None
    assert found.output < found.output_alone


def test_it_grows_with_price_and_gpus() -> None:
    one, double = cost(PLAN, WISH, 1.0), cost(PLAN, WISH, 2.0)
    assert double.input == pytest.approx(2 * (one.input or 0))


def test_what_does_not_fit_has_no_price() -> None:
    l4 = spec_named("L4")
    assert l4 is not None
    none = cost(plan(KNOWN["llama-3-70b"], l4, Wish(users=100)), Wish(users=100), 1.0)
    assert (none.input, none.output) == (None, None)


def test_it_is_told_in_the_table_and_in_json() -> None:
    words = ["llama-2-7b", "--gpu", "L40S", "--dtype", "fp16", "--gpu-hour", "1"]
    text = CliRunner().invoke(command, words, standalone_mode=False).output
    assert "1M tokens, at least" in text
    assert max(map(len, text.splitlines())) <= 80
    told = json.loads(CliRunner().invoke(command, [*words, "--json"], standalone_mode=False).output)
    assert told["cost"]["gpu_hour"] == 1.0
