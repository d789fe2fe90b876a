"""The worked examples of the literature, which count in round numbers, come out within a few per cent of them."""

from typing import Any

import pytest

from engine.capacity import GIB, Plan, Wish, parameters, plan
from engine.known_shapes import KNOWN
from engine.roofline import Bound
from vocab.catalogue.specs import Spec, spec_named


def board(name: str) -> Spec:
    found = spec_named(name)
    assert found is not None
    return found


def planned(model: str, gpu: str, **wish: Any) -> Plan:
    return plan(KNOWN[model], board(gpu), Wish(dtype="fp16", kv_dtype="fp16", **wish))


def test_llama_2_7b_has_14_gb_of_weights_and_half_a_mebibyte_a_token() -> None:
    found = planned("llama-2-7b", "A10")
    assert found.parameters == 6_738_415_616
    assert found.weight_bytes == pytest.approx(14e9, rel=0.05)
    assert found.kv_bytes_a_token == 0.5 * 2**20
    assert found.request_bytes == 2 * GIB


@pytest.mark.parametrize(("gpu", "requests"), [("A10", 4), ("L40S", 16)])
def test_llama_2_7b_serves_so_many_requests_of_4096_beside_2_gb_of_workspace(gpu: str, requests: int) -> None:
    assert planned("llama-2-7b", gpu, context=4096).requests == requests


def test_llama_3_70b_in_fp16_has_140_gb_320_kb_a_token_and_128_gb_for_100_users_at_4k() -> None:
    found = planned("llama-3-70b", "H100-SXM", context=4000, users=100)
    assert found.weight_bytes == pytest.approx(140e9, rel=0.01)
    assert found.kv_bytes_a_token == 320 * 1024
    assert found.kv_bytes == pytest.approx(128e9, rel=0.03)
    assert found.gpus == 4
    assert found.requests is not None
    assert found.requests >= 100


def test_the_ridge_point_of_an_l40s() -> None:
    found = planned("llama-2-7b", "L40S")
    assert found.ridge == pytest.approx(419, rel=0.01)
    assert found.ridge_rows == pytest.approx(419, rel=0.01)


@pytest.mark.parametrize(("gpu", "rows"), [("H200-SXM", 206), ("A100-SXM-80GB", 153)])
def test_the_batch_above_which_decoding_no_longer_waits_for_weights(gpu: str, rows: float) -> None:
    assert planned("llama-3-8b", gpu).ridge_rows == pytest.approx(rows, rel=0.01)


def test_decoding_waits_for_memory_and_a_long_prompt_for_arithmetic() -> None:
    found = planned("llama-2-7b", "L40S")
    assert (found.prefill_bound, found.full_decode_bound) == (Bound.COMPUTE, Bound.MEMORY)
    assert found.decode_tokens_per_s == pytest.approx(864e9 / (found.weight_bytes + 2 * GIB), rel=0.03)


def test_what_fits_on_no_number_of_gpus_has_no_times_but_still_its_sizes() -> None:
    found = planned("llama-3-70b", "L4", context=8192, users=100)
    assert (found.gpus, found.requests, found.decode_s, found.prefill_s) == (None, None, None, None)
    assert found.weight_bytes > 0


def test_more_gpus_than_key_value_heads_keep_them_more_than_once() -> None:
    two, eight = (planned("qwen2.5-7b", "L4", gpus=gpus).requests or 0 for gpus in (2, 8))
    free_two, free_eight = 2 * 22 * GIB, 8 * 22 * GIB
    weights = parameters(KNOWN["qwen2.5-7b"]) * 2
    assert eight / two == pytest.approx((free_eight - weights) / (free_two - weights) / 2, rel=0.02)


def test_in_float32_no_time_of_a_prompt_is_guessed() -> None:
    assert plan(KNOWN["llama-3-8b"], board("H200-SXM"), Wish(dtype="fp32")).prefill_s is None


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("L40S", "L40S"),
        ("l40s", "L40S"),
        ("NVIDIA H200", "H200-SXM"),
        ("h200-n", "H200-NVL"),
        ("H100", None),
        ("x", None),
    ],
)
def test_a_board_is_named_in_short(word: str, name: str | None) -> None:
    found = spec_named(word)
    assert (found.name if found else None) == name
