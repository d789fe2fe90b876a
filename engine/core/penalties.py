"""What a request adds to, takes from or forbids in the scores of its next token: grammar, bias, length, penalties."""

from collections import Counter
from collections.abc import Sequence

import torch

from engine.core.sequence import Sequence as Request

_NEVER = float("-inf")
_WORD = 32  # tokens in one number of a grammar's bits


def adjust(logits: torch.Tensor, rows: list[tuple[Request, int]]) -> torch.Tensor:
    """``logits`` (rows, vocab) with each sequence's wishes for the token at its position; the same if there are none.

    The order is vLLM's: what may not be, bias, the least length, repetition, frequency, presence.
    """
    wishes = [(row, sequence, position) for row, (sequence, position) in enumerate(rows) if _wishes(sequence, position)]
    if not wishes:
        return logits
    scores = logits.to(torch.float32, copy=True)
    _follow_grammars(scores, [(row, sequence) for row, sequence, _ in wishes])
    for row, sequence, position in wishes:
        rule = sequence.sampling
        if rule.logit_bias:
            tokens, added = zip(*rule.logit_bias, strict=True)
            scores[row].index_add_(0, put(tokens, scores), put(added, scores, torch.float32))
        if position - sequence.prompt_len < rule.min_tokens and rule.stop_ids:
            scores[row].index_fill_(0, put(list(rule.stop_ids), scores), _NEVER)
        if rule.penalised:
            _penalise(scores[row], sequence, position)
    return scores


def _wishes(sequence: Request, position: int) -> bool:
    rule = sequence.sampling
    early = position - sequence.prompt_len < rule.min_tokens
    return early or rule.penalised or bool(rule.logit_bias) or sequence.grammar is not None


def put(numbers: Sequence[float], beside: torch.Tensor, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """``numbers`` (n,) on the device of ``beside``, without waiting for what the device still does."""
    if beside.device.type != "cuda":
        return torch.tensor(numbers, dtype=dtype, device=beside.device)
    return torch.tensor(numbers, dtype=dtype, pin_memory=True).to(beside.device, non_blocking=True)


def _penalise(scores: torch.Tensor, sequence: Request, position: int) -> None:
    """Counted on the host, where the tokens are: a few hundred numbers instead of passes over the vocabulary."""
    rule = sequence.sampling
    if rule.repetition_penalty != 1.0:
        seen = put(list(set(sequence.tokens[:position])), scores)
        known = scores[seen]
        scores[seen] = torch.where(known > 0, known / rule.repetition_penalty, known * rule.repetition_penalty)
    said = Counter(sequence.tokens[sequence.prompt_len : position])
    taken = [rule.frequency_penalty * count + rule.presence_penalty for count in said.values()]
    scores.index_add_(0, put(list(said), scores), put(taken, scores, torch.float32), alpha=-1)


def _follow_grammars(scores: torch.Tensor, rows: list[tuple[int, Request]]) -> None:
    """Forbid what a grammar does not allow; bit ``b`` of word ``w`` stands for token 32 w + b."""
    bound = [(row, sequence.grammar) for row, sequence in rows if sequence.grammar is not None]
    if not bound:
        return
    vocab = scores.shape[1]
    bits = torch.full((len(bound), -(-vocab // _WORD)), -1, dtype=torch.int32)
    for place, (_, grammar) in enumerate(bound):
        grammar.fill(bits, place)
    shifts = torch.arange(_WORD, dtype=torch.int32, device=scores.device)
    allowed = (bits.to(scores.device)[:, :, None] >> shifts) & 1
    rows_at = put([row for row, _ in bound], scores)
    forbidden = allowed.flatten(1)[:, :vocab] == 0
    scores[rows_at] = scores[rows_at].masked_fill(forbidden, _NEVER)
