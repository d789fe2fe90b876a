"""Guesses at the tokens of one sequence: what followed the last time that it ended like this."""

from collections.abc import Sequence as Tokens

GRAMS = (3, 2)  # tokens that must be equal before a guess, the longer first
LEAST_RATE = 0.25  # of drafted tokens that must be right, as a moving average
WEIGHT = 0.2  # of the latest draft in that average: five wrong drafts in a row end the guessing
SLEEP = 48  # tokens without drafts after that


class Lookup:
    """What followed each short run of one sequence's tokens, and how well guessing by it goes."""

    def __init__(self) -> None:
        self.rate = 1.0
        self._after: dict[tuple[int, ...], int] = {}  # run of tokens -> the place behind its latest occurrence
        self._seen = 0
        self._wakes_at = 0

    def awake(self, known: int) -> bool:
        """Whether to guess at ``known`` tokens."""
        return known >= self._wakes_at

    def guess(self, tokens: Tokens[int], most: int) -> tuple[int, ...]:
        """Up to ``most`` tokens that may come next; none if the end of ``tokens`` has not been seen before."""
        for end in range(self._seen, len(tokens)):
            for size in GRAMS:
                if end >= size:
                    self._after[tuple(tokens[end - size : end])] = end
        self._seen = len(tokens)
        for size in GRAMS:
            place = self._after.get(tuple(tokens[-size:])) if len(tokens) >= size else None
            if place is not None:
                text = list(tokens[place:])  # may be short: what repeats goes on from its own guess
                for number in range(most - len(text)):
                    text.append(text[number])
                return tuple(text[:most])
        return ()

    def learn(self, share: float, known: int) -> None:
        """Book the share of a draft that was right."""
        self.rate += WEIGHT * (share - self.rate)
        if self.rate < LEAST_RATE:
            self._wakes_at = known + SLEEP
            self.rate = 2 * LEAST_RATE
