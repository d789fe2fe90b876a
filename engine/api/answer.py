"""One choice of an answer as its client sees it: the step loop's outputs as pieces of text."""

from collections.abc import Sequence

import msgspec

from engine.api.matcher import Compiled
from engine.core.sequence import Finish, Output, Sampling, TokenLogprobs
from engine.text.detokenizer import Detokenizer, StopFinder


class Choice(msgspec.Struct, frozen=True):
    """One answer that is asked for. ``generated``: its tokens that another replica has given already."""

    prompt: list[int]
    sampling: Sampling
    stops: tuple[str, ...] = ()
    include_stop: bool = False
    generated: list[int] = []
    priority: int = 0
    client: str = ""
    grammar: Compiled | None = None


class Piece(msgspec.Struct, frozen=True):
    """A part of an answer: text that may be shown, the tokens that came with it, and the end if this is it."""

    text: str
    token_ids: list[int]
    finish: Finish | None = None
    logprobs: list[TokenLogprobs] = []  # one a token, if asked for
    stopped_by: str | None = None  # the stop string that ended it
    known: bool = False  # what the client of a resumed answer has already
    refused: bool = False  # it ends because its form takes too long to follow
    cached: int = 0  # with the end: tokens of the prompt that the prefix cache had


class AnswerText:
    """Outputs in, pieces out; a stop string in the text ends the answer, whatever the loop still computes.

    What a resumed answer has already is read first: the pieces go on where those of the other replica ended.
    """

    def __init__(self, text: Detokenizer, choice: Choice, logprobs: dict[int, TokenLogprobs] | None = None) -> None:
        self._text = text
        self._rule = choice.sampling
        self._include_stop = choice.include_stop
        self._stops = StopFinder(choice.stops, include=choice.include_stop)
        self._logprobs = {} if logprobs is None else logprobs  # the sequence's own, by position
        self._start = len(choice.prompt)
        self._count = 0
        known = [Output("", token, self._rule.ends(token, place)) for place, token in enumerate(choice.generated, 1)]
        self.resumed = msgspec.structs.replace(self.push(known), known=True)
        """What the client has; with a finish if nothing is left to be computed."""

    def push(self, outputs: Sequence[Output]) -> Piece:
        """The outputs that have come together, as one piece. After a piece with ``finish`` nothing may follow."""
        shown, tokens, logprobs = "", [], []
        for output in outputs:
            if output.token is not None:
                tokens.append(output.token)
                told = self._logprobs.pop(self._start + self._count, None)
                if told is not None:
                    logprobs.append(told)
                self._count += 1
                shown += self._take(output.token, output.finish)
            if output.finish is not None and self._stops.found is None:
                shown += self._stops.push(self._text.flush()) + self._stops.flush()
            if self._stops.found is not None:
                return Piece(shown, tokens, Finish.STOP, logprobs, self._stops.found)
            if output.finish is not None:
                return Piece(shown, tokens, output.finish, logprobs)
        return Piece(shown, tokens, None, logprobs)

    def _take(self, token: int, finish: Finish | None) -> str:
        if finish is Finish.STOP and not self._include_stop:  # the token that stops is not part of the text
            return ""
        text = self._text.push(token)
        return text if self._count <= self._rule.min_tokens else self._stops.push(text)
