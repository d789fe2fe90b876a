"""The text of an answer while it grows: whole characters only, and nothing that may still become a stop string."""

from collections.abc import Callable, Sequence

Decode = Callable[[Sequence[int]], str]

_BROKEN = "\N{REPLACEMENT CHARACTER}"


class Detokenizer:
    """Tokens in, text out. The pieces joined are the text of all tokens at once.

    Some decoders treat a token by its neighbours (a space before the first word goes away), so each piece is the
    difference between two decodings that begin at the same, already printed token.
    """

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._window: list[int] = []  # tokens printed last, then those not yet printed
        self._printed = 0

    def push(self, token: int) -> str:
        """The text that this token completes; empty while a character is incomplete."""
        self._window.append(token)
        text = self._fresh()
        if text.endswith(_BROKEN):
            return ""
        self._window = self._window[self._printed :]
        self._printed = len(self._window)
        return text

    def flush(self) -> str:
        """What is left when no more tokens come, incomplete characters as U+FFFD."""
        text = self._fresh()
        self._printed = len(self._window)
        return text

    def _fresh(self) -> str:
        before = self._decode(self._window[: self._printed])
        return self._decode(self._window)[len(before) :]


class StopFinder:
    """Lets text through up to the first stop string, and holds back what may be the beginning of one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.found = False

    def push(self, text: str) -> str:
        """The part that may be shown now; sets ``found`` when a stop string has come."""
        if self.found:
            return ""
        text = self._held + text
        places = [place for stop in self._stops if (place := text.find(stop)) >= 0]
        if places:
            self.found = True
            self._held = ""
            return text[: min(places)]
        kept = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept]

    def flush(self) -> str:
        """What was held back, when no more text comes."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of ``text`` that begins ``stop``."""
    longest = min(len(text), len(stop) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)
