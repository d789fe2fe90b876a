"""Prompts with known answers, through the engine's own model, cache and kernels.

The answers are made greedily and together: one step computes the prompts, each other one a token of all, and each is
compared: the known token must be the best one, with the known log probability. Two tokens nearer than the tolerance
may change places. The cache's own blocks are used and given back; what they hold is never offered to other requests.
"""

from collections.abc import Iterator
from typing import Protocol

import torch

from engine.core.blocks import BlockPool
from engine.core.sequence import Sampling, Sequence, Span, Step
from engine.health.golden import Answer
from engine.health.outcome import Outcome, Told, learned, passed, problem

LENGTH = 4  # tokens of an answer: one of the prompt's step, the others of decodes


class Scorer(Protocol):
    """What makes logits of steps: the engine's runner."""

    def logits(self, step: Step) -> torch.Tensor:
        """Scores (rows, vocab) behind each span that samples."""
        ...


class _Asked:
    """One prompt on its way."""

    def __init__(self, number: int, prompt: tuple[int, ...], expected: Answer | None) -> None:
        self.number = number
        self.prompt = prompt
        self.expected = expected
        self.sequence = Sequence("canary", list(prompt), Sampling(max_tokens=LENGTH + 1), 0.0)
        self.logprobs: list[float] = []

    @property
    def tokens(self) -> tuple[int, ...]:
        """The answer so far."""
        return tuple(self.sequence.tokens[len(self.prompt) :])

    @property
    def pending(self) -> Span:
        """What the next step computes of it."""
        start = self.sequence.computed
        return Span(self.sequence, start, len(self.sequence.tokens) - start, samples=1)

    def take(self, token: int, logprob: float) -> None:
        """Go on with its next token."""
        self.sequence.computed = len(self.sequence.tokens)
        self.sequence.tokens.append(token)
        self.logprobs.append(logprob)


class KnownPrompts:
    """Asks the prompts (the shortest first), again and again."""

    def __init__(self, scorer: Scorer, pool: BlockPool, asked: tuple[tuple[int, ...], ...],
                 known: tuple[Answer, ...], tolerance: float) -> None:  # fmt: skip
        self._scorer = scorer
        self._pool = pool
        self._asked = asked
        self._tolerance = tolerance
        self.known = known if tuple(answer.prompt for answer in known) == asked else ()

    def check(self) -> Iterator[Told | None]:
        """One step a piece; at the end what came of all prompts."""
        expected = self.known or (None,) * len(self._asked)
        asked = [_Asked(number + 1, *pair) for number, pair in enumerate(zip(self._asked, expected, strict=True))]
        wrong: list[str] = []
        try:
            if not all(self._pool.grow(one.sequence, len(one.prompt) + LENGTH) for one in asked):
                yield Told(Outcome.UNKNOWN, "the cache had no room for the known prompts")
                return
            for _ in range(LENGTH):
                wrong += self._step(asked)
                if wrong:
                    break
                yield None
        finally:
            for one in asked:
                one.sequence.corrupt = bool(wrong)  # so that nothing of it stays in the cache
                self._pool.release(one.sequence)
        if wrong:
            yield problem(Outcome.WRONG_ANSWER, f"known prompts got other answers: {', '.join(wrong)}")
        elif self.known:
            yield passed()
        else:
            self.known = tuple(Answer(one.prompt, one.tokens, tuple(one.logprobs)) for one in asked)
            yield learned()

    def _step(self, asked: list[_Asked]) -> Iterator[str]:
        """Compute the next token of each; what is not as it was."""
        rows = self._scorer.logits(Step(tuple(one.pending for one in asked))).float().log_softmax(-1)
        for one, scores in zip(asked, rows, strict=True):
            best, place = int(scores.argmax()), len(one.tokens)
            token = best if one.expected is None else one.expected.tokens[place]
            if one.expected is not None:
                off = self._difference(scores, best, token, one.expected.logprobs[place])
                if off is not None:
                    yield f"prompt {one.number}, token {place + 1}: {off}"
            one.take(token, float(scores[token]))

    def _difference(self, scores: torch.Tensor, best: int, token: int, logprob: float) -> str | None:
        """What is not as it was, beyond the tolerance. NaN is never within it."""
        found = float(scores[token])
        if not abs(found - logprob) <= self._tolerance:
            return f"log probability {found:.4f} where it was {logprob:.4f}"
        if best != token and not float(scores[best]) - found <= 2 * self._tolerance:
            return f"token {best} where it was {token}"
        return None
