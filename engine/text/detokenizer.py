"""The text of an answer while it grows: whole characters only, and nothing that may still become a stop string.

It is made where answers are written out, never in the step loop's thread, and costs the same for each token.
"""

import codecs
from collections.abc import Callable, Sequence
from typing import Protocol

Decode = Callable[[Sequence[int]], str]

_BROKEN = "\N{REPLACEMENT CHARACTER}"
_MOST_PENDING = 64  # tokens that are decoded again and again; a character has four bytes, so these never end


class Detokenizer(Protocol):
    """Tokens in, text out. The pieces joined are the text of all tokens at once."""

    def push(self, token: int) -> str:
        """The text that this token completes; empty while a character is incomplete."""
        ...

    def flush(self) -> str:
        """What is left when no more tokens come, incomplete characters as U+FFFD."""
        ...


class ByteText:
    """For byte-level vocabularies, where a token is bytes and its neighbours do not matter."""

    def __init__(self, bytes_of: Callable[[int], bytes]) -> None:
        self._bytes_of = bytes_of
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """See Detokenizer."""
        return self._decoder.decode(self._bytes_of(token))

    def flush(self) -> str:
        """See Detokenizer."""
        return self._decoder.decode(b"", True)


class WindowText:
    """For all others: some treat a token by its neighbours (a space before the first word goes away).

    Each piece is the difference between two decodings that begin at the same, already printed token.
    """

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._window: list[int] = []  # tokens printed last, then those not yet printed
        self._printed = 0

    def push(self, token: int) -> str:
        """See Detokenizer."""
        self._window.append(token)
        text = self._fresh()
        if text.endswith(_BROKEN) and len(self._window) - self._printed < _MOST_PENDING:
            return ""
        self._window = self._window[self._printed :]
        self._printed = len(self._window)
        return text

    def flush(self) -> str:
        """See Detokenizer."""
        text = self._fresh()
        self._printed = len(self._window)
        return text

    def _fresh(self) -> str:
        before = self._decode(self._window[: self._printed])
        return self._decode(self._window)[len(before) :]


class StopFinder:
    """Lets text through up to the first stop string, and holds back what may be the beginning of one."""

    def __init__(self, stops: Sequence[str], *, include: bool = False) -> None:
        self._stops = tuple(stops)
        self._include = include
        self.held = ""  # what may still become a stop string
        self.found: str | None = None

    def push(self, text: str) -> str:
        """The part that may be shown now; sets ``found`` when a stop string has come."""
        if self.found is not None:
            return ""
        text = self.held + text
        places = [(place, stop) for stop in self._stops if (place := text.find(stop)) >= 0]
        if places:
            place, self.found = min(places, key=lambda one: one[0])
            self.held = ""
            return text[: place + len(self.found) * self._include]
        kept = max((_overlap(text, stop) for stop in self._stops), default=0)
        self.held = text[len(text) - kept :]
        return text[: len(text) - kept]

    def flush(self) -> str:
        """What was held back, when no more text comes."""
        held, self.held = self.held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of ``text`` that begins ``stop``."""
    longest = min(len(text), len(stop) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)
