"""Choosing the next tokens from logits, all rows of a step at once and each by its own rule.

The order is that of OpenAI's API as vLLM has it: grammar, bias and least length; the penalties, of repetition over
prompt and answer, of presence and frequency over the answer; then, unless the best is taken, temperature, min-p,
top-k, top-p, and a draw by the inverse of the cumulated distribution. One uniform number decides a draw. It comes
from (seed, position) alone, so a request gives the same tokens in any batch, after a preemption, where another
replica resumes it, and, since any draft is kept exactly if it is what would have been drawn, with speculation.

Only rows with a wish are touched by what it costs. Nothing waits for the device before ``Sampled.host``.
"""

from collections.abc import Callable
from hashlib import blake2b

import msgspec
import torch

from engine.penalties import adjust, put
from engine.sequence import Sampling, Sequence, TokenLogprobs

_SHORT_LIST = 256  # candidates tried first for top-p: sorting a whole vocabulary costs ten times as much
_NOTHING = float("-inf")


class Row(msgspec.Struct, frozen=True):
    """One row of logits: the token that it gives ``sequence`` will stand at ``position``."""

    sequence: Sequence
    position: int

    @property
    def rule(self) -> Sampling:
        """The sequence's rule."""
        return self.sequence.sampling


class _Likely(msgspec.Struct, frozen=True):
    """Logprobs on the device: of the chosen tokens of some rows, and of the best of each."""

    rows: list[int]
    chosen: torch.Tensor  # (rows,)
    best: torch.Tensor  # (rows, most)
    tokens: torch.Tensor  # (rows, most)


class Sampled:
    """What a step has chosen, still on its device."""

    def __init__(self, tokens: torch.Tensor, rows: list[Row], likely: _Likely | None) -> None:
        self.tokens = tokens  # (rows,)
        self._rows = rows
        self._likely = likely

    def host(self) -> list[int]:
        """The tokens; waits for the device, once. Logprobs that were asked for are left in their sequences."""
        likely = self._likely
        if likely is None:
            return [int(token) for token in self.tokens.tolist()]
        chosen, best, tokens = likely.chosen.tolist(), likely.best.tolist(), likely.tokens.tolist()
        for place, number in enumerate(likely.rows):
            row = self._rows[number]
            pairs = zip(tokens[place][: row.rule.logprobs], best[place], strict=False)
            row.sequence.logprobs[row.position] = TokenLogprobs(chosen[place], tuple(pairs))
        return [int(token) for token in self.tokens.tolist()]


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) that depends on nothing else."""
    digest = blake2b(f"{seed}/{position}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53


def sample(logits: torch.Tensor, rows: list[Row]) -> Sampled:
    """One token for each row of ``logits`` (rows, vocab), which is left as it is."""
    scores = adjust(logits, [(row.sequence, row.position) for row in rows])
    drawn = [number for number, row in enumerate(rows) if row.rule.temperature > 0]
    if len(drawn) < len(rows):
        tokens = scores.argmax(dim=-1)
    else:
        tokens = torch.empty(len(rows), dtype=torch.int64, device=logits.device)
    if drawn:
        places = put(drawn, logits)
        tokens[places] = _draw(scores[places], [rows[number] for number in drawn])
    return Sampled(tokens, rows, _likely(logits, tokens, rows))


def _draw(scores: torch.Tensor, rows: list[Row]) -> torch.Tensor:
    """One token a row. In double precision: the sum over a vocabulary must not drift by a draw's worth."""

    def column(value: Callable[[Row], float]) -> torch.Tensor:
        return put([value(row) for row in rows], scores, torch.float64)[:, None]

    scores = scores.double() / column(lambda row: row.rule.temperature)
    if any(row.rule.min_p for row in rows):
        least = scores.amax(dim=-1, keepdim=True) + column(lambda row: row.rule.min_p).log()
        scores = scores.masked_fill(scores < least, _NOTHING)
    scores = _top(scores, [row.rule for row in rows])
    reached = scores.softmax(dim=-1).cumsum(dim=-1)
    total = reached[:, -1:]
    at = (column(lambda row: uniform(row.rule.seed, row.position)) * total).minimum(total.nextafter(total * 0))
    return torch.searchsorted(reached, at, right=True)[:, 0]


def _top(scores: torch.Tensor, rules: list[Sampling]) -> torch.Tensor:
    """``scores`` with -inf for what top-k, and then top-p in what is left, leave out. Equals of the last one stay."""
    vocab = scores.shape[1]
    most = max((rule.top_k for rule in rules if 0 < rule.top_k < vocab), default=0)
    if most:
        places = [min(rule.top_k or vocab, vocab) - 1 for rule in rules]
        best = scores.topk(most).values
        wanted = put([min(place, most - 1) for place in places], scores)[:, None]
        limited = put([place < vocab - 1 for place in places], scores, torch.bool)[:, None]
        scores = scores.masked_fill(limited & (scores < best.gather(1, wanted)), _NOTHING)
    if all(rule.top_p >= 1.0 for rule in rules):
        return scores
    chances = scores.softmax(dim=-1)
    enough = put([rule.top_p for rule in rules], scores, torch.float64)[:, None]
    best = chances.topk(min(_SHORT_LIST, vocab)).values
    if scores.device.type != "cpu" or bool((best.sum(dim=-1, keepdim=True) < enough.where(enough < 1, 0)).any()):
        best = chances.sort(descending=True).values  # on a device always: to look would be to wait
    before = best.cumsum(dim=-1) - best
    kept = (before < enough).sum(dim=-1, keepdim=True).clamp(min=1)
    floor = best.gather(1, kept - 1)
    return scores.masked_fill((chances < floor) & (enough < 1), _NOTHING)


def _likely(logits: torch.Tensor, tokens: torch.Tensor, rows: list[Row]) -> _Likely | None:
    wanting = [number for number, row in enumerate(rows) if row.rule.logprobs is not None]
    if not wanting:
        return None
    places = put(wanting, logits)
    logprobs = logits[places].float().log_softmax(dim=-1)
    best = logprobs.topk(max(rows[number].rule.logprobs or 0 for number in wanting))
    chosen = logprobs.gather(1, tokens[places][:, None])[:, 0]
    return _Likely(wanting, chosen, best.values, best.indices)
