import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.known_shapes import KNOWN
from engine.roofline import Bound, Cost, Roof, Shape, cost, shape_of

SMALL = Shape(
    layer_parameters=1000,
    head_parameters=200,
    hidden=10,
    layers=2,
    heads=4,
    kv_heads=2,
    head_dim=8,
    weight_bytes=2,
    kv_bytes=2,
)


def test_one_token_of_one_sequence_by_hand() -> None:
    found = cost(SMALL, [(99, 1)], 1)
    assert found.flops == 2 * 1000 + 2 * 200 + 4 * 2 * 4 * 8 * 100
    assert found.read == 2 * 1000 + 2 * 200 + 2 * 10 + 2 * 2 * 2 * 8 * 2 * 100
    assert found.written == 2 * 2 * 2 * 8 * 2


def test_the_head_is_read_and_computed_only_where_logits_are_wanted() -> None:
    without, with_one = cost(SMALL, [(0, 16)], 0), cost(SMALL, [(0, 16)], 1)
    assert with_one.flops - without.flops == 2 * 200
    assert with_one.read - without.read == 2 * 200


def test_weights_are_read_once_however_many_sequences_a_step_has() -> None:
    one, many = cost(SMALL, [(0, 1)], 1), cost(SMALL, [(0, 1)] * 8, 8)
    assert many.flops == 8 * one.flops
    assert many.read < 2 * one.read


@given(st.integers(0, 500), st.integers(1, 64), st.integers(1, 64))
def test_a_prompt_in_two_chunks_costs_the_arithmetic_of_one(cached: int, first: int, second: int) -> None:
    whole = cost(SMALL, [(cached, first + second)], 1)
    parts = cost(SMALL, [(cached, first)], 0) + cost(SMALL, [(cached + first, second)], 1)
    assert parts.flops == whole.flops
    assert parts.written == whole.written
    assert parts.read > whole.read  # the weights twice


def test_the_three_bounds() -> None:
    roof = Roof(flops_per_s=100.0, bytes_per_s=10.0, launch_s=1.0)
    assert roof.ridge == 10.0
    assert roof.floor(Cost(1000, 10, 10), 1) == (10.0, Bound.COMPUTE)
    assert roof.floor(Cost(100, 30, 10), 1) == (4.0, Bound.MEMORY)
    assert roof.floor(Cost(1, 1, 1), 38) == (38.0, Bound.LAUNCHES)


def test_of_an_unknown_device_nothing_is_said() -> None:
    assert Roof().ridge is None
    assert Roof().floor(Cost(1, 1, 1), 1) is None


def test_smollm2_on_an_h200_is_bound_by_launches_and_qwen3_14b_by_memory() -> None:
    h200 = Roof(989.4e12, 4.8e12, 2e-6)
    small, large = KNOWN["smollm2-135m"], KNOWN["qwen3-14b"]
    assert h200.floor(cost(shape_of(small, 2, 2), [(0, 1)], 1), 9 * small.layers) == (
        pytest.approx(540e-6),
        Bound.LAUNCHES,
    )
    seconds, bound = h200.floor(cost(shape_of(large, 2, 2), [(0, 1)], 1), 9 * large.layers) or (0, None)
    assert (seconds, bound) == (pytest.approx(6.0e-3, rel=0.05), Bound.MEMORY)
