"""The sum of the bits of all weights: exact, whatever the order, and one flipped bit changes it.

Each tensor is read as integers of its own width and added up modulo 2**64. It costs one reading of the weights, in
pieces that a waiting request does not feel.
"""

from collections.abc import Iterable, Iterator

import torch

from engine.health.outcome import Outcome, Told, learned, passed, problem

PIECE_BYTES = 32 * 2**20
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class WeightsSum:
    """Adds the weights up, again and again; the first sum is what the others are compared with, unless one is known."""

    def __init__(self, weights: Iterable[torch.Tensor], known: int | None = None) -> None:
        self._weights = [tensor for tensor in weights if tensor.element_size() in _INTEGERS]
        self.known = known

    def check(self) -> Iterator[Told | None]:
        """One piece at a time; at the end what came of it."""
        total = 0
        for part in self._pieces():
            total = (total + int(part.sum(dtype=torch.int64).item())) % 2**64
            yield None
        if self.known is None:
            self.known = total
            yield learned()
        elif total != self.known:
            yield problem(Outcome.WRONG_WEIGHTS, "the weights in memory are not those that were loaded")
        else:
            yield passed()

    def _pieces(self) -> Iterator[torch.Tensor]:
        for tensor in self._weights:
            width = tensor.element_size()
            flat = tensor.detach().contiguous().view(-1).view(_INTEGERS[width])
            yield from torch.split(flat, PIECE_BYTES // width)
