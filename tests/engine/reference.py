"""The sampler's law written down once more, for one row, in numpy: slow, plain, and what the tests hold it to."""

from typing import Any

import numpy as np

from engine.core.sampler import Row, uniform
from engine.core.sequence import Sampling, Sequence

Floats = np.ndarray
VOCAB = 60
PROMPT = [3, 5, 5, 9]


def request(prompt: list[int] | None = None, generated: list[int] | None = None, **wish: Any) -> Sequence:
    """A sequence with this rule."""
    rule = Sampling(**{"max_tokens": 50, **wish})
    return Sequence("a", prompt or PROMPT, rule, 0.0, generated=generated or [])


def row(sequence: Sequence) -> Row:
    """Its next token."""
    return Row(sequence, len(sequence.tokens))


WISHES: list[dict[str, Any]] = [
    {},
    {"temperature": 1.0},
    {"temperature": 0.3},
    {"temperature": 1.7, "top_k": 5},
    {"temperature": 1.0, "top_k": 1},
    {"temperature": 1.0, "top_k": VOCAB},
    {"temperature": 1.0, "top_p": 0.8},
    {"temperature": 2.0, "top_p": 1e-6},
    {"temperature": 1.0, "min_p": 0.1},
    {"temperature": 1.0, "min_p": 1.0},
    {"temperature": 1.5, "top_k": 20, "top_p": 0.7, "min_p": 0.02},
    {"presence_penalty": 1.5},
    {"frequency_penalty": -0.9},
    {"repetition_penalty": 1.8},
    {"repetition_penalty": 0.6, "frequency_penalty": 0.5, "presence_penalty": -1.0},
    {"logit_bias": ((4, 100.0), (5, -100.0))},
    {"logit_bias": ((4, 2.5),), "temperature": 1.0, "repetition_penalty": 1.3, "top_p": 0.9},
    {"min_tokens": 9, "stop_ids": frozenset({1, 2}), "temperature": 1.0},
    {"min_tokens": 2, "stop_ids": frozenset({1, 2}), "temperature": 1.0},
]
SAID = [7, 7, 8, 3, 40]


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
