"""The sampler's law written down once more, for one row, in numpy: slow, plain, and what the tests hold it to."""

import numpy as np

from engine.sampler import uniform
from engine.sequence import Sequence

Floats = np.ndarray


def logprobs(logits: Floats) -> Floats:
    """Natural logarithms of the softmax."""
    logits = logits.astype(np.float64)
    return np.asarray(logits - logits.max() - np.log(np.exp(logits - logits.max()).sum()))


def _adjusted(logits: Floats, sequence: Sequence, position: int) -> Floats:
    rule = sequence.sampling
    scores = logits.astype(np.float64)
    answer = sequence.tokens[sequence.prompt_len : position]
    for token, bias in rule.logit_bias:
        scores[token] += bias
    if len(answer) < rule.min_tokens:
        scores[list(rule.stop_ids)] = -np.inf
    for token in set(sequence.tokens[:position]):
        scores[token] *= rule.repetition_penalty if scores[token] <= 0 else 1 / rule.repetition_penalty
    for token in set(answer):
        scores[token] -= rule.frequency_penalty * answer.count(token) + rule.presence_penalty
    return scores


def chances(logits: Floats, sequence: Sequence, position: int) -> Floats:
    """The probability of each token."""
    rule = sequence.sampling
    scores = _adjusted(logits, sequence, position)
    if rule.temperature == 0:
        return np.eye(len(scores))[scores.argmax()]
    found = np.exp(logprobs(scores / rule.temperature))
    found[found < rule.min_p * found.max() * (1 - 1e-12)] = 0
    if 0 < rule.top_k < len(found):
        found[found < np.sort(found)[-rule.top_k]] = 0
    found /= found.sum()
    if rule.top_p < 1:
        order = np.argsort(-found)
        kept = 1 + int((np.cumsum(found[order])[:-1] < rule.top_p).sum())
        found[order[kept:]] = 0
    return np.asarray(found / found.sum())


def pick(logits: Floats, sequence: Sequence, position: int) -> int:
    """The token that the draw of this seed and position gives."""
    reached = np.cumsum(chances(logits, sequence, position))
    at = uniform(sequence.sampling.seed, position) * reached[-1]
    return int(np.searchsorted(reached, at, side="right"))
