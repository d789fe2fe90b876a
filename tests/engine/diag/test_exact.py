"""The exact product: its constants, its arithmetic, and that any wrong value shows."""

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.diag.bench import CPU, CUDA, Bench
from engine.diag.exact import (
    KNOWN,
    PERIOD,
    P,
    checksum,
    column_weights,
    expected,
    left,
    measure,
    product,
    right,
    row_weights,
)

SMALL = (192, 320, 128)


def test_every_shape_of_both_devices_has_its_constant():
    assert set(KNOWN) == {*CPU.shapes, *CUDA.shapes}


@pytest.mark.parametrize("shape", CPU.shapes)
def test_the_constants_of_the_cpu_follow_from_pythons_integers(shape):
    assert KNOWN[shape] == expected(shape)


@pytest.mark.parametrize("shape", CUDA.shapes)
def test_the_constants_of_the_gpu_follow_from_64_bit_integers(shape):
    m, k, n = shape
    u = torch.tensor(list(row_weights(m)))
    v = torch.tensor(list(column_weights(n)))
    ua = (left(m, k) * u.view(-1, 1)).sum(dim=0) % P  # terms below 2**32, 2**13 of them at most
    bv = (right(k, n) * v.view(1, -1)).sum(dim=1) % P
    assert KNOWN[shape] == sum(a * b for a, b in zip(ua.tolist(), bv.tolist(), strict=True)) % P


@pytest.mark.parametrize("shape", [*CPU.shapes, *CUDA.shapes])
def test_no_partial_sum_leaves_what_float32_holds_exactly(shape):
    m, k, n = shape
    assert 8 * 8 * k < 2**24
    assert max(m, n) < PERIOD
    assert max(8 * 8 * k * (P - 1) * n, 8 * (P - 1) * m) < 2**63  # the checksum's own sums


def test_operands_are_integers_that_tf32_holds_and_use_their_whole_range():
    for operand in (left(64, 64), right(64, 64)):
        assert (int(operand.min()), int(operand.max())) == (-8, 8)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_a_sound_device_gives_the_constant(kind):
    m, k, n = SMALL
    assert checksum(product(Bench("cpu"), left(m, k), right(k, n), kind)) == KNOWN[SMALL]


@cache
def right_product():
    return left(SMALL[0], SMALL[1]) @ right(SMALL[1], SMALL[2])


@settings(deadline=None)
@given(st.integers(0, SMALL[0] - 1), st.integers(0, SMALL[2] - 1), st.integers(-(2**18), 2**18).filter(bool))
def test_one_wrong_value_anywhere_shows(row, column, error):
    good = right_product().clone()
    good[row, column] += error
    assert checksum(good) != KNOWN[SMALL]


def test_two_rows_that_changed_places_show():
    good = right_product()
    assert checksum(good[[1, 0, *range(2, SMALL[0])]]) != KNOWN[SMALL]


def test_a_corrupt_device_is_wrong_in_every_product():
    found = measure(Bench("cpu", is_corrupt=True))
    assert len(found.wrong) == found.products > 0
