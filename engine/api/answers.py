"""The open answers of a replica: what the step loop publishes finds its way to those who wait for it."""

import asyncio
import itertools
from collections.abc import AsyncGenerator

import msgspec

from engine.api.answer import AnswerText, Choice, Piece
from engine.api.grammar import too_slow
from engine.api.matcher import Matcher
from engine.core.sequence import Finish, Output, Sequence
from engine.loop import StepLoop
from engine.text.tokenizer import Tokenizer


class Answers:
    """Lives in the HTTP loop's thread; so the text of answers is made there, and never delays a step."""

    def __init__(self, replica: str, steps: StepLoop) -> None:
        self._replica = replica
        self._steps = steps
        self._queues: dict[str, asyncio.Queue[Output]] = {}
        self._names = itertools.count(1)

    def __len__(self) -> int:
        return len(self._queues)

    def deliver(self, outputs: list[Output]) -> None:
        """What a step has given."""
        for output in outputs:
            queue = self._queues.get(output.id)
            if queue is not None:  # else the client has gone since
                queue.put_nowait(output)

    def end_all(self, finish: Finish) -> None:
        """Nothing more will come."""
        self.deliver([Output(name, None, finish) for name in self._queues])

    async def pieces(
        self, choices: list[Choice], tokenizer: Tokenizer, now: float
    ) -> AsyncGenerator[tuple[int, Piece], None]:
        """(number of the choice, piece) as they come; the last piece of each has ``finish``.

        Closing the iterator early frees what it held, within a step.
        """
        queue: asyncio.Queue[Output] = asyncio.Queue()
        open_: dict[str, tuple[int, Sequence, AnswerText]] = {}
        try:
            known = []
            for number, choice in enumerate(choices):
                sequence = self._sequence(choice, now)
                text = AnswerText(tokenizer.stream(), choice, sequence.logprobs)
                if choice.generated:
                    known.append((number, text.resumed))
                if text.resumed.finish is None:
                    open_[sequence.id] = number, sequence, text
                    self._queues[sequence.id] = queue
                    self._steps.submit(sequence)
            for number, piece in known:
                yield number, piece
            while open_:
                for name, outputs in _by_name(await _all_of(queue)).items():
                    if name not in open_:  # it ended by a stop string, which the loop learns of a step late
                        continue
                    number, sequence, text = open_[name]
                    piece = text.push(outputs)
                    if piece.finish is not None:
                        refused = sequence.grammar is not None and sequence.grammar.spent
                        piece = msgspec.structs.replace(piece, cached=sequence.cached, refused=refused)
                        self._forget(name, piece.finish if outputs[-1].finish is None else None)
                        del open_[name]
                    yield number, piece
        finally:
            for name in open_:
                self._forget(name, Finish.ABORT)

    def _sequence(self, choice: Choice, now: float) -> Sequence:
        grammar = None
        if choice.grammar is not None:
            grammar = Matcher(choice.grammar, choice.sampling.stop_ids)
            for token in choice.generated:
                grammar.accept(token)
            if grammar.spent:
                raise too_slow()
        name = f"{self._replica}-{next(self._names)}"
        return Sequence(name, choice.prompt, choice.sampling, now, generated=choice.generated,
                        priority=choice.priority, client=choice.client, grammar=grammar)  # fmt: skip

    def _forget(self, name: str, cancelled: Finish | None) -> None:
        del self._queues[name]
        if cancelled is not None:
            self._steps.cancel(name, cancelled)


async def _all_of(queue: asyncio.Queue[Output]) -> list[Output]:
    """What is there, at least one."""
    outputs = [await queue.get()]
    while not queue.empty():
        outputs.append(queue.get_nowait())
    return outputs


def _by_name(outputs: list[Output]) -> dict[str, list[Output]]:
    found: dict[str, list[Output]] = {}
    for output in outputs:
        found.setdefault(output.id, []).append(output)
    return found
