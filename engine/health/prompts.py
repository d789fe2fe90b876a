"""Prompts with known answers, through the engine's own model, cache and kernels.

Each answer is made greedily, a step a piece, and each step is compared: the known token must be the best one, with
the known log probability. Two tokens nearer than the tolerance may change places. The cache's own blocks are used
and given back; what they hold is never offered to other requests.
"""

from collections.abc import Iterator
from typing import Protocol

import torch

from engine.blocks import BlockPool
from engine.health.golden import Answer
from engine.health.outcome import Outcome, Told, learned, passed, problem
from engine.sequence import Sampling, Sequence, Span, Step

LENGTH = 8  # tokens of an answer


class Scorer(Protocol):
    """What makes logits of steps: the engine's runner."""

    def logits(self, step: Step) -> torch.Tensor:
        """Scores (rows, vocab) behind each span that samples."""
        ...


class KnownPrompts:
    """Asks the prompts, again and again."""

    def __init__(self, scorer: Scorer, pool: BlockPool, asked: tuple[tuple[int, ...], ...],
                 known: tuple[Answer, ...], tolerance: float) -> None:  # fmt: skip
        self._scorer = scorer
        self._pool = pool
        self._asked = asked
        self._tolerance = tolerance
        self.known = known if tuple(answer.prompt for answer in known) == asked else ()

    def check(self) -> Iterator[Told | None]:
        """One step a piece; at the end what came of all prompts."""
        wrong: list[str] = []
        answers: list[Answer] = []
        for number, prompt in enumerate(self._asked):
            expected = self.known[number] if self.known else None
            for made in self._answer(prompt, expected):
                if isinstance(made, str):
                    wrong.append(f"prompt {number + 1}, {made}")
                elif made is not None:
                    answers.append(made)
                yield None
        if wrong:
            yield problem(Outcome.WRONG_ANSWER, f"known prompts got other answers: {', '.join(wrong)}")
        elif self.known:
            yield passed()
        elif len(answers) == len(self._asked):
            self.known = tuple(answers)
            yield learned()
        else:
            yield Told(Outcome.UNKNOWN, "the cache had no room for the known prompts")

    def _answer(self, prompt: tuple[int, ...], expected: Answer | None) -> Iterator[Answer | str | None]:
        """None between steps, at last the answer or what was wrong with it; nothing if the cache has no room."""
        sequence = Sequence("canary", list(prompt), Sampling(max_tokens=LENGTH + 1), 0.0)
        tokens: list[int] = []
        logprobs: list[float] = []
        try:
            if not self._pool.grow(sequence, len(prompt) + LENGTH):
                return
            for place in range(LENGTH):
                start = sequence.computed
                step = Step((Span(sequence, start, len(sequence.tokens) - start, samples=1),))
                scores = self._scorer.logits(step)[-1].float().log_softmax(-1)
                best = int(scores.argmax())
                token = best if expected is None else expected.tokens[place]
                if expected is not None:
                    off = self._difference(scores, best, token, expected.logprobs[place])
                    if off is not None:
                        yield f"token {place + 1}: {off}"
                        return
                tokens.append(token)
                logprobs.append(float(scores[token]))
                sequence.computed = len(sequence.tokens)
                sequence.tokens.append(token)
                if place + 1 < LENGTH:
                    yield None
            yield Answer(prompt, tuple(tokens), tuple(logprobs))
        finally:
            self._pool.release(sequence)

    def _difference(self, scores: torch.Tensor, best: int, token: int, logprob: float) -> str | None:
        """What is not as it was, beyond the tolerance. NaN is never within it."""
        found = float(scores[token])
        if not abs(found - logprob) <= self._tolerance:
            return f"log probability {found:.4f} where it was {logprob:.4f}"
        if best != token and not float(scores[best]) - found <= 2 * self._tolerance:
            return f"token {best} where it was {token}"
        return None
