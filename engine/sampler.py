"""Choosing the next token from logits.

One uniform number decides a draw, by the inverse of the cumulated distribution. It comes from (seed, position)
alone, so the same request gives the same tokens in any batch, after a preemption, and on any device.
"""

from hashlib import blake2b

import torch

from engine.sequence import Sampling

_SHORT_LIST = 256  # candidates tried first for top-p: sorting a whole vocabulary costs ten times as much


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) that depends on nothing else."""
    digest = blake2b(f"{seed}/{position}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53


def sample(logits: torch.Tensor, rows: list[tuple[Sampling, int]]) -> list[int]:
    """One token for each row of ``logits`` (rows, vocab); ``rows`` has its rule and the position it will take."""
    tokens: list[int] = logits.argmax(dim=-1).tolist()
    for row, (rule, position) in enumerate(rows):
        if rule.temperature > 0:
            tokens[row] = _draw(logits[row], rule, uniform(rule.seed, position))
    return tokens


def _draw(logits: torch.Tensor, rule: Sampling, at: float) -> int:
    # Double precision: the cumulated sum of a whole vocabulary must not drift by more than one draw's worth.
    scores = logits.double() / rule.temperature
    if 0 < rule.top_k < len(scores):
        scores, tokens = scores.topk(rule.top_k)
        return int(tokens[_nucleus(scores.softmax(0), rule.top_p, at)])
    chances = scores.softmax(0)
    if rule.top_p >= 1.0:
        return _pick(chances, at)
    top, tokens = chances.topk(min(_SHORT_LIST, len(chances)))
    if float(top.sum()) < rule.top_p:
        top, tokens = chances.sort(descending=True)
    return int(tokens[_nucleus(top, rule.top_p, at)])


def _nucleus(chances: torch.Tensor, top_p: float, at: float) -> int:
    """A draw among the first of these descending ``chances`` that together reach ``top_p``."""
    before = chances.cumsum(0) - chances
    kept = max(1, int((before < top_p).sum()))
    return _pick(chances[:kept], at)


def _pick(chances: torch.Tensor, at: float) -> int:
    reached = chances.cumsum(0)
    place = int(torch.searchsorted(reached, at * float(reached[-1]), right=True))
    return min(place, len(chances) - 1)
