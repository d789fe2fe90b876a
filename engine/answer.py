"""The answer to one request as its client sees it: the step loop's outputs as pieces of text."""

from collections.abc import Sequence

import msgspec

from engine.sequence import Finish, Output
from engine.text import Decode, Detokenizer, StopFinder


class Piece(msgspec.Struct, frozen=True):
    """A part of an answer: text that may be shown, the tokens that came with it, and the end if this is it."""

    text: str
    token_ids: list[int]
    finish: Finish | None = None


class AnswerText:
    """Outputs in, pieces out; a stop string in the text ends the answer, whatever the loop still computes."""

    def __init__(self, decode: Decode, stops: Sequence[str]) -> None:
        self._text = Detokenizer(decode)
        self._stops = StopFinder(stops)

    def push(self, outputs: Sequence[Output]) -> Piece:
        """The outputs that have come together, as one piece. After a piece with ``finish`` nothing may follow."""
        shown = ""
        tokens = []
        for output in outputs:
            if output.token is not None:
                tokens.append(output.token)
                if output.finish is not Finish.STOP:  # the token that stops is not part of the text
                    shown += self._stops.push(self._text.push(output.token))
            if output.finish is not None and not self._stops.found:
                shown += self._stops.push(self._text.flush()) + self._stops.flush()
            if self._stops.found:
                return Piece(shown, tokens, Finish.STOP)
            if output.finish is not None:
                return Piece(shown, tokens, output.finish)
        return Piece(shown, tokens)
