"""The sum of the bits of all weights: exact, whatever the order, and one flipped bit changes it.

Each tensor is read as integers of eight bytes, whatever its type, and added up modulo 2**64; the bytes that are left
at its end count one by one. It costs one reading of the weights (eight bytes at a time that is a tenth of what it
costs to widen four), in pieces that a waiting request does not feel.
"""

from collections.abc import Iterable, Iterator

import torch

from engine.health.outcome import Outcome, Told, learned, passed, problem

PIECE_BYTES = 32 * 2**20
_WORD = 8  # bytes


class WeightsSum:
    """Adds the weights up, again and again; the first sum is what the others are compared with, unless one is known."""

    def __init__(self, weights: Iterable[torch.Tensor], known: int | None = None) -> None:
        self._weights = list(weights)
        self.known = known

    def check(self) -> Iterator[Told | None]:
        """One piece at a time; at the end what came of it."""
        total = 0
        for part in self._pieces():
            total = (total + _sum(part)) % 2**64
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
            yield from torch.split(tensor.detach().contiguous().view(-1).view(torch.uint8), PIECE_BYTES)


def _sum(part: torch.Tensor) -> int:
    """Of the words and the last bytes of ``part`` (bytes,); it wraps around as the words do."""
    words = part[: len(part) // _WORD * _WORD]
    if words.storage_offset() % _WORD or words.data_ptr() % _WORD:  # mapped weights may begin anywhere
        words = words.clone()
    rest = part[len(words) :]
    return int(words.view(torch.int64).sum().item()) + int(rest.sum(dtype=torch.int64).item())
