"""Choosing the next tokens from logits, all rows of a step at once and each by its own rule.

The order is that of OpenAI's API as vLLM has it: grammar, bias and least length; the penalties, of repetition over
prompt and answer, of presence and frequency over the answer; then, unless the best is taken, temperature, min-p,
top-k, top-p, and a draw by the inverse of the cumulated distribution. One uniform number decides a draw. It comes
from (seed, position) alone, so a request gives the same tokens in any batch, after a preemption, where another
replica resumes it, and, since any draft is kept exactly if it is what would have been drawn, with speculation.

Only rows with a wish are touched by what it costs. Nothing waits for the device before ``Sampled.host``.
"""

from hashlib import blake2b

import msgspec
import torch

from engine.core.penalties import adjust, put
from engine.core.sequence import Sampling, Sequence, TokenLogprobs

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

    def __init__(self, tokens: torch.Tensor, corrupt: torch.Tensor, rows: list[Row], likely: _Likely | None) -> None:
        self.tokens = tokens  # (rows,)
        self._corrupt = corrupt  # (watched,): whether a logit was no number
        self._watched = [row.sequence for row in rows]
        self._rows = rows
        self._likely = likely
        self._there: torch.cuda.Event | None = None

    def watch(self, sequences: list[Sequence], states: torch.Tensor) -> None:
        """Notice too whether these are no numbers: the last states (n, hidden) of prompts that go on.

        What was no number further up in a prompt has made its last state none.
        """
        self._watched += sequences
        wrong = states.sum(dim=-1, dtype=torch.float32).isfinite().logical_not()
        self._corrupt = torch.cat((self._corrupt, wrong))

    def sent(self) -> "Sampled":
        """Itself, on its way to the host: ``host`` then waits for this step alone, not for what is launched later."""
        if not self.tokens.is_cuda:
            return self
        likely = self._likely
        if likely is not None:
            likely = _Likely(likely.rows, _send(likely.chosen), _send(likely.best), _send(likely.tokens))
        sent = Sampled(_send(self.tokens), _send(self._corrupt), self._rows, likely)
        sent._watched = self._watched
        sent._there = torch.cuda.Event()  # type: ignore[no-untyped-call]
        sent._there.record()
        return sent

    def host(self) -> list[int]:
        """The tokens; waits for the device, once. Leaves in their sequences what else is told of them."""
        if self._there is not None:
            self._there.synchronize()
        for sequence, corrupt in zip(self._watched, self._corrupt.tolist(), strict=True):
            sequence.corrupt |= corrupt
        likely = self._likely
        if likely is None:
            return [int(token) for token in self.tokens.tolist()]
        chosen, best, tokens = likely.chosen.tolist(), likely.best.tolist(), likely.tokens.tolist()
        for place, number in enumerate(likely.rows):
            row = self._rows[number]
            pairs = zip(tokens[place][: row.rule.logprobs], best[place], strict=False)
            row.sequence.logprobs[row.position] = TokenLogprobs(chosen[place], tuple(pairs))
        return [int(token) for token in self.tokens.tolist()]


def _send(values: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(values, device="cpu", pin_memory=True).copy_(values, non_blocking=True)


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) that depends on nothing else."""
    digest = blake2b(f"{seed}/{position}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53


def sample(logits: torch.Tensor, rows: list[Row]) -> Sampled:
    """One token for each row of ``logits`` (rows, vocab), which is left as it is.

    Logits that are no numbers give a token all the same, any one that there is, and say so.
    """
    scores = adjust(logits, [(row.sequence, row.position) for row in rows])
    drawn = [number for number, row in enumerate(rows) if row.rule.temperature > 0]
    if len(drawn) < len(rows):
        tokens = _first_best(scores)
    else:
        tokens = torch.empty(len(rows), dtype=torch.int64, device=logits.device)
    if drawn:
        places = put(drawn, logits)
        tokens[places] = _draw(scores[places], [rows[number] for number in drawn])
    return Sampled(tokens, logits.amax(dim=-1).isfinite().logical_not(), rows, _likely(logits, tokens, rows))


def at_hand(values: torch.Tensor) -> bool:
    """Whether they can be looked at without waiting for a device."""
    return values.device.type == "cpu"


def _first_best(scores: torch.Tensor) -> torch.Tensor:
    """The best token of each row; of equals the first."""
    if at_hand(scores) and scores.dtype == torch.float32:  # numpy's is vectorised: 26 times as fast
        return torch.from_numpy(scores.numpy().argmax(axis=-1))
    return scores.argmax(dim=-1)


def _draw(scores: torch.Tensor, rows: list[Row]) -> torch.Tensor:
    """One token a row. The sums are of double precision: over a vocabulary they must not drift by a draw's worth."""
    rules = [row.rule for row in rows]
    scores = scores.float() / _column([rule.temperature for rule in rules], scores)
    if any(rule.min_p for rule in rules):
        least = scores.amax(dim=-1, keepdim=True) + _column([rule.min_p for rule in rules], scores).log()
        scores = scores.masked_fill(scores < least, _NOTHING)
    chances = _nucleus(_best(scores, rules).softmax(dim=-1), rules)
    reached = chances.cumsum(dim=-1, dtype=torch.float64)
    total = reached[:, -1:]
    at = _column([uniform(row.rule.seed, row.position) for row in rows], scores, torch.float64) * total
    found = torch.searchsorted(reached, at.minimum(total.nextafter(total * 0)), right=True)[:, 0]
    return found.clamp(max=scores.shape[1] - 1)  # among what is no number nothing is found


def _column(values: list[float], beside: torch.Tensor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return put(values, beside, dtype)[:, None]


def _best(scores: torch.Tensor, rules: list[Sampling]) -> torch.Tensor:
    """``scores`` with -inf for what is behind each rule's top k; equals of the last one stay."""
    vocab = scores.shape[1]
    limited = [number for number, rule in enumerate(rules) if 0 < rule.top_k < vocab]
    if not limited:
        return scores
    counts = [rules[number].top_k for number in limited]
    places = put(limited, scores)
    some = scores[places]
    floor = some.topk(max(counts)).values.gather(1, put(counts, scores)[:, None] - 1)
    return scores.index_copy(0, places, some.masked_fill(some < floor, _NOTHING))


def _nucleus(chances: torch.Tensor, rules: list[Sampling]) -> torch.Tensor:
    """``chances`` with 0 for what is not among the fewest that reach each rule's top p; equals of the last one stay."""
    limited = [number for number, rule in enumerate(rules) if rule.top_p < 1.0]
    if not limited:
        return chances
    places = put(limited, chances)
    some = chances[places]
    enough = _column([rules[number].top_p for number in limited], chances, torch.float64)
    if at_hand(chances):
        floor = _floor(some.topk(min(_SHORT_LIST, some.shape[1])).values, enough)
        short = floor[:, 0] < 0
        if bool(short.any()):
            floor[short] = _floor(some[short].sort(descending=True).values, enough[short])
    else:  # to look whether a short list were long enough would be to wait
        floor = _floor(some.sort(descending=True).values, enough)
    return chances.index_copy(0, places, some.masked_fill(some < floor, 0.0))


def _floor(best: torch.Tensor, enough: torch.Tensor) -> torch.Tensor:
    """The least chance that is kept, of descending ``best``; -1 if all of them together are not enough."""
    reached = best.cumsum(dim=-1, dtype=torch.float64)
    kept = (reached - best < enough).sum(dim=-1, keepdim=True).clamp(min=1)
    least = best.gather(1, kept - 1)
    return least.where((reached[:, -1:] >= enough) | (least == 0), torch.full_like(least, -1))


def _likely(logits: torch.Tensor, tokens: torch.Tensor, rows: list[Row]) -> _Likely | None:
    wanting = [number for number, row in enumerate(rows) if row.rule.logprobs is not None]
    if not wanting:
        return None
    places = put(wanting, logits)
    logprobs = logits[places].float().log_softmax(dim=-1)
    best = logprobs.topk(max(rows[number].rule.logprobs or 0 for number in wanting))
    chosen = logprobs.gather(1, tokens[places][:, None])[:, 0]
    return _Likely(wanting, chosen, best.values, best.indices)
