"""Something faster for whole prompts is used where it agrees with the textbook, and nowhere else."""

import pytest
import torch

from engine.cuda.prompts import Attend, _textbook, tried

LIKE = torch.empty(0, dtype=torch.float16)


def textbook(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bounds: torch.Tensor, longest: int) -> torch.Tensor:
    lengths = tuple(bounds.diff().tolist())
    assert max(lengths) == longest
    return _textbook(q, k, v, lengths).to(q.dtype)


def wrong(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bounds: torch.Tensor, longest: int) -> torch.Tensor:
    return textbook(q, k, v, bounds, longest) * 1.5


def lacking(*_: object) -> torch.Tensor:
    raise RuntimeError("no kernel image is available for execution on the device")


def test_what_agrees_with_the_textbook_is_used() -> None:
    assert tried(textbook, 4, 2, 16, LIKE) is textbook


@pytest.mark.parametrize("attend", [None, wrong, lacking])
def test_what_is_wrong_or_lacking_here_is_not(attend: Attend | None) -> None:
    assert tried(attend, 4, 2, 16, LIKE) is None


def test_full_precision_is_left_to_our_own_kernel() -> None:
    assert tried(textbook, 4, 2, 16, torch.empty(0)) is None
