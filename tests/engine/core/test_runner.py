import json
from pathlib import Path

import pytest
import torch

from engine.core.sequence import Sampling, Sequence
from engine.loading import Loaded, load_model
from tests.engine.replica import settings
from tests.engine.tiny import FAMILIES, write_model

ORACLE = json.loads((Path(__file__).parents[2] / "data" / "oracle_families.json").read_text())
TIE = 1e-3  # logits this close may change places with the order of the sums


def generate(model: Loaded, sequences: list[Sequence]) -> list[list[int]]:
    for one in sequences:
        model.scheduler.add(one)
    while (step := model.scheduler.schedule()) is not None:
        model.scheduler.settle(step, model.runner.run(step))
    return [one.tokens[one.prompt_len :] for one in sequences]


def wish(name: str, length: int, most: int = 12, **rule: object) -> Sequence:
    prompt = [3 + (length * 31 + place * 7) % 250 for place in range(length)]
    return Sequence(name, prompt, Sampling(max_tokens=most, **rule), 0.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", ORACLE["cases"], ids=lambda case: case["name"])
def test_every_family_generates_what_transformers_does(case: dict, tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", FAMILIES[case["name"]], seed=ORACLE["seed"])
    model = load_model(settings(folder))
    rule = Sampling(max_tokens=len(case["tokens"]))
    [found] = generate(model, [Sequence("a", case["prompt_ids"], rule, 0.0)])
    assert min(case["gaps"]) > TIE
    assert found == case["tokens"]


def test_a_batch_of_mixed_lengths_gives_what_each_gets_alone(tiny_model: Path) -> None:
    lengths = (1, 5, 16, 17, 40, 90, 3)
    alone = [generate(load_model(settings(tiny_model)), [wish("a", length)])[0] for length in lengths]
    together = generate(load_model(settings(tiny_model)), [wish(str(length), length) for length in lengths])
    assert together == alone


@pytest.mark.parametrize("chunk", [16, 17, 64])
def test_a_prompt_in_chunks_gives_what_it_gives_whole(chunk: int, tiny_model: Path) -> None:
    whole = generate(load_model(settings(tiny_model, step_tokens=256)), [wish("a", 150)])
    assert generate(load_model(settings(tiny_model, step_tokens=chunk)), [wish("a", 150)]) == whole


def test_a_known_prefix_gives_what_computing_it_gives(tiny_model: Path) -> None:
    model = load_model(settings(tiny_model))
    first = generate(model, [wish("a", 60)])
    assert generate(model, [wish("b", 60)]) == first
    assert model.scheduler.prefix_hits == 48


def test_preemption_does_not_change_an_answer(tiny_model: Path) -> None:
    lengths = (30, 31, 32, 33)
    roomy = [generate(load_model(settings(tiny_model)), [wish("a", length, 40)])[0] for length in lengths]
    model = load_model(settings(tiny_model))
    model.scheduler.pool.grow(wish("ballast", 1), model.scheduler.pool.count * 16 - 10 * 16)
    together = generate(model, [wish(str(length), length, 40) for length in lengths])
    assert model.scheduler.preemptions > 0
    assert together == roomy


def test_a_seed_gives_the_same_draws_in_any_company(tiny_model: Path) -> None:
    rule = {"temperature": 1.0, "top_p": 0.9, "seed": 11}
    alone = generate(load_model(settings(tiny_model)), [wish("a", 9, **rule)])[0]
    among = generate(load_model(settings(tiny_model)), [wish("x", 4), wish("a", 9, **rule), wish("y", 70)])
    assert among[1] == alone
    other = generate(load_model(settings(tiny_model)), [wish("a", 9, **{**rule, "seed": 12})])[0]
    assert other != alone


def test_a_step_has_the_threads_that_are_chosen_for_it(tiny_model: Path) -> None:
    model = load_model(settings(tiny_model, threads=2))
    inner, seen = model.runner._model, []  # type: ignore[attr-defined]

    class Watched:
        def forward(self, tokens, positions, backend):  # type: ignore[no-untyped-def]
            seen.append((len(tokens), torch.get_num_threads()))
            return inner.forward(tokens, positions, backend)

        def logits(self, hidden):  # type: ignore[no-untyped-def]
            return inner.logits(hidden)

    class Chosen:
        def __init__(self) -> None:
            self.told: list[int] = []

        def choose(self, tokens: int) -> int:
            return 1 if tokens == 1 else 2

        def took(self, tokens: int, threads: int, seconds: float) -> None:
            self.told.append(tokens)
            assert threads == self.choose(tokens)
            assert seconds > 0

    chosen = Chosen()
    model.runner._model, model.runner._threads = Watched(), chosen  # type: ignore[attr-defined]
    try:
        generate(model, [wish("a", 9, 3)])
    finally:
        torch.set_num_threads(1)
    assert seen == [(9, 2), (1, 1), (1, 1)]
    assert chosen.told == [9, 1, 1]
