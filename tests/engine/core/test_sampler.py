from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.core import sampler
from engine.core.sampler import Row, sample, uniform
from engine.core.sequence import Sequence
from tests.engine.reference import SAID, VOCAB, WISHES, chances, logprobs, pick, request, row


def one(logits: torch.Tensor, sequence: Sequence) -> int:
    return sample(logits[None], [row(sequence)]).host()[0]


def random_logits(seed: int, rows: int = 1, vocab: int = VOCAB) -> torch.Tensor:
    return torch.randn(rows, vocab, generator=torch.Generator().manual_seed(seed)) * 3


def draws(logits: list[float], count: int, **wish: Any) -> Counter[int]:
    tensor = torch.tensor([logits])
    sequence = request(seed=7, **wish)
    return Counter(sample(tensor, [Row(sequence, position)]).host()[0] for position in range(count))


@pytest.mark.parametrize("wish", WISHES, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_a_choice_is_the_one_of_the_written_law(wish: dict[str, Any], seed: int) -> None:
    logits = random_logits(seed)[0]
    sequence = request(generated=SAID, seed=seed, **wish)
    expected = pick(logits.numpy(), sequence, len(sequence.tokens))
    assert one(logits, sequence) == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_what_a_gpu_computes_without_being_waited_for_is_the_same(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rules in one batch, on the way that a device takes, of logits as it has them."""
    monkeypatch.setattr(sampler, "at_hand", lambda _: False)
    sequences = [request(generated=SAID, seed=seed, logprobs=2, **wish) for seed in range(8) for wish in WISHES]
    logits = random_logits(11, len(sequences)).to(dtype)
    found = sample(logits, [row(sequence) for sequence in sequences]).sent().host()
    law = [
        pick(scores, sequence, len(sequence.tokens))
        for scores, sequence in zip(logits.float().numpy(), sequences, strict=True)
    ]
    assert found == law
    assert all(len(sequence.logprobs) == 1 for sequence in sequences)


@pytest.mark.parametrize("here", [True, False])
def test_among_logits_that_are_no_numbers_some_token_is_chosen_and_it_is_said(
    here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "at_hand", lambda _: here)
    sequences = [request(**wish) for wish in WISHES]
    logits = random_logits(2, len(sequences))
    logits[:, 17] = float("nan")
    logits[::3] = float("nan")
    assert all(0 <= token < VOCAB for token in sample(logits, [row(sequence) for sequence in sequences]).host())
    assert all(sequence.corrupt for sequence in sequences)


@given(st.lists(st.integers(0, len(WISHES) - 1), min_size=1, max_size=8), st.integers(0, 1000))
def test_a_row_is_the_same_in_any_company(wishes: list[int], seed: int) -> None:
    logits = random_logits(seed, len(wishes))
    rows = [row(request(generated=SAID[:number], seed=seed, **WISHES[wish])) for number, wish in enumerate(wishes)]
    alone = [sample(logits[place : place + 1], [rows[place]]).host()[0] for place in range(len(rows))]
    assert sample(logits, rows).host() == alone


@pytest.mark.parametrize(
    "wish",
    [
        {"temperature": 1.0},
        {"temperature": 0.7, "top_p": 0.9},
        {"temperature": 1.3, "top_k": 4},
        {"temperature": 1.0, "min_p": 0.05, "presence_penalty": 0.4},
    ],
    ids=str,
)
def test_draws_follow_the_distribution(wish: dict[str, Any]) -> None:
    logits = random_logits(3, vocab=12)[0]
    sequences = [request(seed=seed, generated=[1, 2], **wish) for seed in range(6_000)]
    found = Counter(sample(logits.expand(len(sequences), -1), [row(sequence) for sequence in sequences]).host())
    wanted = chances(logits.numpy(), sequences[0], len(sequences[0].tokens)) * len(sequences)
    assert all(wanted[token] > 0 for token in found)
    cells = wanted > 5
    statistic = sum((found[token] - wanted[token]) ** 2 / wanted[token] for token in np.flatnonzero(cells))
    assert statistic < 33.0  # chi-square of 11 degrees of freedom: 1 in 2,000 is above it


def test_positions_are_as_independent_as_seeds() -> None:
    wanted = torch.tensor([0.0, 1.0, 2.0]).softmax(0)
    found = draws([0.0, 1.0, 2.0], 4_000, temperature=1.0)
    for token in range(3):
        assert found[token] / 4_000 == pytest.approx(float(wanted[token]), abs=0.03)


def test_rows_without_a_wish_leave_the_logits_as_they_are() -> None:
    logits = random_logits(1, 3)
    before = logits.clone()
    sample(logits, [row(request(**wish)) for wish in ({}, {"presence_penalty": 1.0}, {"temperature": 1.0})])
    assert torch.equal(logits, before)


def test_top_p_of_a_flat_distribution_looks_further_than_its_short_list() -> None:
    assert len(draws([0.0] * 2_000, 500, temperature=1.0, top_p=0.9)) > 300


def test_a_peaked_row_beside_a_flat_one_keeps_its_own_nucleus() -> None:
    logits = torch.stack([torch.zeros(2_000), torch.cat([torch.tensor([30.0]), torch.zeros(1_999)])])
    rows = [row(request(temperature=1.0, top_p=0.9, seed=seed)) for seed in (1, 2)]
    assert sample(logits, rows).host()[1] == 0


@pytest.mark.parametrize("wish", [{}, {"temperature": 1.0, "top_k": 2}, {"repetition_penalty": 2.0}])
def test_logprobs_are_those_of_the_model_before_any_rule(wish: dict[str, Any]) -> None:
    logits = random_logits(5)[0]
    sequence = request(logprobs=3, **wish)
    token = one(logits, sequence)
    [(position, found)] = sequence.logprobs.items()
    raw = logprobs(logits.numpy())
    best = np.argsort(-raw)[:3]
    assert position == len(sequence.tokens)
    assert found.logprob == pytest.approx(raw[token], abs=1e-5)
    assert [number for number, _ in found.best] == best.tolist()
    assert [value for _, value in found.best] == pytest.approx(raw[best].tolist(), abs=1e-5)


def test_each_row_gets_as_many_of_the_best_as_it_asked_for() -> None:
    sequences = [request(logprobs=count) for count in (0, 5, 2)] + [request()]
    sample(random_logits(2, 4), [row(sequence) for sequence in sequences]).host()
    assert [[len(found.best) for found in one.logprobs.values()] for one in sequences] == [[0], [5], [2], []]


class Evens:
    """A grammar of even numbers."""

    def fill(self, bits: Any, row: int) -> None:
        bits[row] = 0x55555555

    def accept(self, token: int) -> None:
        assert token % 2 == 0


@pytest.mark.parametrize("wish", [{}, {"temperature": 2.0}])
def test_a_grammar_binds_its_own_row_only(wish: dict[str, Any]) -> None:
    logits = torch.zeros(2, 70)
    logits[:, 67] = 9.0
    logits[:, 66] = 8.0
    bound, free = request(**wish), request()
    bound.grammar = Evens()
    found = sample(logits, [row(bound), row(free)]).host()
    assert found[0] % 2 == 0
    assert found[1] == 67


@given(st.integers(0, 2**63 - 1), st.integers(0, 10**6))
def test_a_uniform_number_is_in_its_range(seed: int, position: int) -> None:
    assert 0.0 <= uniform(seed, position) < 1.0


def test_uniform_numbers_are_spread() -> None:
    assert sum(uniform(1, position) for position in range(2_000)) / 2_000 == pytest.approx(0.5, abs=0.03)
