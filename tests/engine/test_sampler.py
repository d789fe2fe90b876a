from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.sampler import sample, uniform
from engine.sequence import Sampling


def rule(**wish: object) -> Sampling:
    return Sampling(max_tokens=1, **wish)  # type: ignore[arg-type]


def draws(logits: list[float], count: int, **wish: object) -> Counter[int]:
    row = torch.tensor([logits])
    return Counter(sample(row, [(rule(seed=7, **wish), position)])[0] for position in range(count))


def test_temperature_zero_takes_the_best() -> None:
    assert sample(torch.tensor([[0.1, 3.0, 2.9], [5.0, 0.0, 1.0]]), [(rule(), 1), (rule(), 2)]) == [1, 0]


def test_the_same_seed_and_position_give_the_same_token_in_any_batch() -> None:
    row = torch.randn(1, 200, generator=torch.Generator().manual_seed(1))
    wish = rule(temperature=1.3, seed=5)
    alone = sample(row, [(wish, 17)])
    among = sample(torch.cat([row * 2, row, row - 1]), [(rule(temperature=1.0, seed=9), 3), (wish, 17), (wish, 18)])
    assert among[1] == alone[0]


def test_draws_follow_the_distribution() -> None:
    found = draws([0.0, 1.0, 2.0], 4_000, temperature=1.0)
    wanted = torch.tensor([0.0, 1.0, 2.0]).softmax(0)
    for token in range(3):
        assert found[token] / 4_000 == pytest.approx(float(wanted[token]), abs=0.03)


def test_a_high_temperature_evens_out_and_a_low_one_sharpens() -> None:
    assert draws([0.0, 1.0], 2_000, temperature=2.0)[0] > draws([0.0, 1.0], 2_000, temperature=0.3)[0]


def test_top_k_leaves_only_the_best_k() -> None:
    assert set(draws([0.0, 0.1, 0.2, 0.3], 500, temperature=2.0, top_k=2)) == {2, 3}


def test_top_p_leaves_the_smallest_set_that_reaches_it() -> None:
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log().tolist()
    assert set(draws(logits, 500, temperature=1.0, top_p=0.75)) == {0, 1}


def test_top_p_of_a_flat_distribution_looks_further_than_its_short_list() -> None:
    found = draws([0.0] * 2_000, 500, temperature=1.0, top_p=0.9)
    assert len(found) > 300


def test_top_p_always_leaves_one() -> None:
    assert set(draws([3.0, 0.0, 0.0], 100, temperature=1.0, top_p=1e-6)) == {0}


@given(st.integers(0, 2**63 - 1), st.integers(0, 10**6))
def test_a_uniform_number_is_in_its_range(seed: int, position: int) -> None:
    assert 0.0 <= uniform(seed, position) < 1.0


def test_uniform_numbers_are_spread() -> None:
    assert sum(uniform(1, position) for position in range(2_000)) / 2_000 == pytest.approx(0.5, abs=0.03)
