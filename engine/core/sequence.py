"""One request as the step loop sees it: tokens that are known, and how many of them have been computed.

There is no prefill and no decode phase. A sequence has ``tokens``, and ``computed`` of them have their keys
and values in the cache; each step computes some of the ``pending`` rest. When nothing is left pending, the
logits of the last one give the next token.
"""

from collections.abc import Sequence as Tokens
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from engine.core.lookup import Lookup


class Finish(StrEnum):
    """Why an answer ended, in the words of the OpenAI API and of vLLM's metrics."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"
    ERROR = "error"


class Sampling(msgspec.Struct, frozen=True):
    """How the next token is chosen, and when the answer ends."""

    max_tokens: int
    temperature: float = 0.0  # 0 is greedy
    top_k: int = 0  # 0 is all
    top_p: float = 1.0
    seed: int = 0
    stop_ids: frozenset[int] = frozenset()
    min_tokens: int = 0  # so many tokens come before a stop id may
    min_p: float = 0.0  # of the best one's chance, what others need at least
    presence_penalty: float = 0.0  # subtracted once from what the answer has
    frequency_penalty: float = 0.0  # ... for each time that the answer has it
    repetition_penalty: float = 1.0  # divides what prompt or answer has
    logit_bias: tuple[tuple[int, float], ...] = ()  # (token, added to its score)
    logprobs: int | None = None  # how many of the best are told beside the chosen; None tells nothing

    @property
    def penalised(self) -> bool:
        """Whether a token's score depends on the tokens before it."""
        return bool(self.presence_penalty or self.frequency_penalty) or self.repetition_penalty != 1.0

    def ends(self, token: int, generated: int) -> Finish | None:
        """Whether ``token``, the answer's ``generated``-th, is its last."""
        if token in self.stop_ids:
            return Finish.STOP
        return Finish.LENGTH if generated >= self.max_tokens else None


class TokenLogprobs(msgspec.Struct, frozen=True):
    """How likely the model found the chosen token, before any rule of sampling, and the best beside it."""

    logprob: float
    best: tuple[tuple[int, float], ...] = ()  # (token, logprob), the most likely first


class Grammar(Protocol):
    """What an answer's tokens must follow; advanced with each token, by the step loop's thread."""

    def fill(self, bits: Any, row: int) -> None:
        """Set in ``bits`` (rows, vocab / 32; int32) the tokens that may come next, in this row."""
        ...

    def accept(self, token: int) -> None:
        """Go on behind ``token``."""
        ...

    @property
    def spent(self) -> bool:
        """Whether following it has taken too long: the answer ends."""
        ...


class Timing(msgspec.Struct):
    """Monotonic seconds; 0.0 stands for *not yet*."""

    arrived: float
    started: float = 0.0
    first_token: float = 0.0
    last_token: float = 0.0
    finished: float = 0.0


class Sequence:
    """The mutable state of one request. Only the step loop's thread changes it."""

    __slots__ = ("blocks", "cached", "chain", "client", "computed", "corrupt", "ended", "flying", "grammar", "id",
                 "logprobs", "lookup", "preemptions", "priority", "promised", "prompt_len", "rank", "resumed",
                 "sampling", "timing", "tokens", "turn")  # fmt: skip

    def __init__(self, id: str, prompt: list[int], sampling: Sampling, arrived: float, *,  # noqa: A002 - a plain id
                 generated: Tokens[int] = (), priority: int = 0, client: str = "",
                 grammar: Grammar | None = None) -> None:  # fmt: skip
        self.id = id
        self.tokens = [*prompt, *generated]
        self.prompt_len = len(prompt)
        self.resumed = len(generated)  # tokens of the answer that another replica has generated
        self.sampling = sampling
        self.priority = priority  # lower goes first
        self.client = client  # turns are fair between clients, see ranking.py
        self.turn = 0
        self.rank = (0, 0)
        self.grammar = grammar
        self.logprobs: dict[int, TokenLogprobs] = {}  # by position, of those that were asked for and not yet told
        self.timing = Timing(arrived)
        self.computed = 0
        self.blocks: list[int] = []
        self.chain: list[int] = []  # content numbers of the leading full blocks, see blocks.py
        self.cached = 0  # tokens of the prompt that the prefix cache had when it was first admitted
        self.corrupt = False  # some of its logits were no numbers
        self.preemptions = 0
        self.flying = 0  # tokens that steps under way compute
        self.promised = 0  # steps under way that sample its next token
        self.ended = False
        self.lookup = Lookup()

    @property
    def stateful(self) -> bool:
        """Whether the next token's rule looks at the tokens before it: no drafts and no step ahead for such a one."""
        return self.grammar is not None or self.sampling.penalised

    @property
    def pending(self) -> int:
        """Tokens, known or promised, that still have to be computed and that no step under way computes."""
        return len(self.tokens) + self.promised - self.computed - self.flying

    @property
    def generated(self) -> int:
        """Tokens of the answer so far."""
        return len(self.tokens) - self.prompt_len

    @property
    def left(self) -> int:
        """Tokens that may still be sampled, beyond those that are promised."""
        return self.sampling.max_tokens - self.generated - self.promised

    def append(self, token: int) -> Finish | None:
        """Take the token that was sampled; says whether it ends the answer."""
        self.tokens.append(token)
        if self.grammar is not None:
            self.grammar.accept(token)
            if self.grammar.spent:
                return Finish.ERROR
        return self.sampling.ends(token, self.generated)


class Span(msgspec.Struct, frozen=True):
    """``count`` tokens of a sequence, from ``start`` on, that one step computes; the last of them may be a draft.

    ``samples``: how many of its last rows give a token, 0 while a prompt's end is not reached. ``ahead``: the first
    token is the one that the step before samples, which is still under way.
    """

    sequence: Sequence
    start: int
    count: int
    samples: int = 0
    draft: tuple[int, ...] = ()
    ahead: bool = False

    @property
    def tokens(self) -> list[int]:
        """What is computed; 0 stands for a token that is not known yet."""
        if self.ahead:
            return [0]
        return [*self.sequence.tokens[self.start : self.start + self.count - len(self.draft)], *self.draft]

    @property
    def positions(self) -> range:
        """Where the tokens that this span samples will stand."""
        end = self.start + self.count + 1
        return range(end - self.samples, end)


class Step(msgspec.Struct, frozen=True):
    """What one forward pass computes: single tokens first, by length of their context, then the longer spans."""

    spans: tuple[Span, ...]

    @property
    def tokens(self) -> int:
        """Tokens that this step computes."""
        return sum(span.count for span in self.spans)


class Output(msgspec.Struct, frozen=True):
    """What a step gave one request: a token, an end, or both."""

    id: str
    token: int | None
    finish: Finish | None = None
