"""Where one answer stands in its form: which tokens may come next.

It is asked in the step loop's thread, for a fraction of a millisecond a token. There are grammars of few letters that
take a hundred times as long, and the longer the longer the answer is (``root ::= root root | "a"``): all who share the
batch would wait. So each answer has a budget of processor time; one that is over it ends with an error, and its form
is not taken again.
"""

import time
from typing import Any

import msgspec

CREDIT_S = 0.25  # of one answer: its first tokens cost most, until their masks are known
EARNED_S = 0.002  # with each token; those of usual forms take a tenth of it

TOO_SLOW = (
    "what the answer must follow takes too long to follow: it can be read in too many ways (an ambiguous grammar?); "
    "send one in which each text is read in one way"
)


class Shape(msgspec.Struct, frozen=True):
    """What an answer must follow. ``kind``: json (a schema), regex, choice (a JSON list) or grammar (EBNF)."""

    kind: str
    text: str


class Compiled(msgspec.Struct, frozen=True):
    """A shape as xgrammar has compiled it. ``slow``: shapes that were found to be too slow."""

    inner: Any
    shape: Shape
    slow: set[Shape]


class Matcher:
    """Of one answer. See sequence.Grammar."""

    def __init__(self, compiled: Compiled, stop_ids: frozenset[int]) -> None:
        import xgrammar

        self._matcher = xgrammar.GrammarMatcher(compiled.inner, override_stop_tokens=sorted(stop_ids) or None)
        self._compiled = compiled
        self._left_s = CREDIT_S
        self.spent = False

    def fill(self, bits: Any, row: int) -> None:
        """See sequence.Grammar. Behind its end everything is allowed: nothing of that is asked for."""
        if not self.spent and not self._matcher.is_terminated():
            began = time.thread_time()
            self._matcher.fill_next_token_bitmask(bits, row)
            self._book(began, earned_s=0.0)

    def accept(self, token: int) -> None:
        """See sequence.Grammar."""
        if not self.spent and not self._matcher.is_terminated():
            began = time.thread_time()
            self._matcher.accept_token(token)
            self._book(began, earned_s=EARNED_S)

    def _book(self, began: float, earned_s: float) -> None:
        self._left_s = min(CREDIT_S, self._left_s + earned_s - (time.thread_time() - began))
        if self._left_s < 0:
            self.spent = True
            self._compiled.slow.add(self._compiled.shape)
