from pathlib import Path

import pytest
import torch

from engine.core.packed import Int8, Packed
from engine.core.sequence import Sequence
from engine.loading import load_model
from tests.engine.core.test_runner import generate, wish
from tests.engine.replica import settings


@pytest.mark.parametrize("rows", [1, 2, 8, 16, 100])
@pytest.mark.parametrize("biased", [False, True])
def test_a_packed_matrix_multiplies_as_it_did(rows: int, biased: bool) -> None:
    dice = torch.Generator().manual_seed(1)
    weight, x, bias = (torch.randn(*shape, generator=dice) for shape in ((96, 40), (rows, 40), (96,)))
    wanted = torch.nn.functional.linear(x, weight, bias if biased else None)
    packed = Packed(weight, bias if biased else None)
    other = torch.randn(rows, 96, generator=dice)
    for found, expected in (
        (packed(x), wanted),
        (packed.silu(x), torch.nn.functional.silu(wanted)),
        (packed.times(x, other), wanted * other),
    ):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert packed.plain.equal(weight)


def test_an_int8_matrix_multiplies_nearly_as_it_did() -> None:
    dice = torch.Generator().manual_seed(1)
    weight, x, bias = (torch.randn(*shape, generator=dice) for shape in ((96, 40), (8, 40), (96,)))
    wanted = torch.nn.functional.linear(x, weight, bias)
    found = Int8(weight, bias)(x)
    assert float((found - wanted).norm() / wanted.norm()) < 0.02


def test_large_values_do_not_overflow() -> None:
    weight, x = torch.full((16, 512), 3.0), torch.full((4, 512), 5.0)
    torch.testing.assert_close(Int8(weight)(x), x @ weight.t(), rtol=0.02, atol=0.0)


class Watched:
    """Counts the rows that meet an int8 head."""

    def __init__(self, head: Int8) -> None:
        self._head = head
        self.rows: list[int] = []

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.rows.append(len(x))
        return self._head(x)


def test_only_steps_without_a_prompt_run_in_int8(tiny_model: Path) -> None:
    model = load_model(settings(tiny_model, quantization="int8"))
    whole = model.runner._model
    watched = whole._small_head = Watched(whole._small_head)  # type: ignore[attr-defined]
    first: list[Sequence] = [wish("a", 1, 1), wish("b", 20, 1)]
    generate(model, first)
    assert watched.rows == []
    generate(model, [wish("c", 1, 5), wish("d", 20, 5)])
    assert watched.rows == [2, 2, 2, 2]


def test_what_a_canary_asks_is_answered_in_float32(tiny_model: Path) -> None:
    model = load_model(settings(tiny_model, quantization="int8"))
    whole = model.runner._model
    watched = whole._small_head = Watched(whole._small_head)  # type: ignore[attr-defined]
    model.runner._model = whole.exact()  # type: ignore[attr-defined]
    generate(model, [wish("c", 1, 5)])
    assert watched.rows == []
