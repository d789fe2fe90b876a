"""How many threads a step is worth on a CPU: all, or one, by what the latest steps took. Pure.

The threads of an operation wait for the last of them, busily, some hundred times a step. On cores that do nothing else
that is quickest. Beside other work the last one is kept from its core for milliseconds each time, and a step takes many
times as long as by one thread alone. Which it is changes with what else runs there. So each size of step (by powers of
two) takes what was quicker, and tries the other now and then: the rarer, the slower that was.
"""

TRY_EVERY = 32  # steps, times how much slower the other was: a trial then costs a thirtieth at most
WEIGHT = 0.25  # of the latest step in what a choice is said to take, ...
MOST = 3.0  # ... and as how many times that it counts at most: one slow step alone changes nothing


class Threads:
    """The choice between ``most`` threads and one, for each size of step."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sizes: dict[int, _Size] = {}

    def choose(self, tokens: int) -> int:
        """Threads for a step of so many tokens."""
        return self._sizes.setdefault(tokens.bit_length(), _Size(self._most)).choose()

    def took(self, tokens: int, threads: int, seconds: float) -> None:
        """What a step with the threads that were chosen took."""
        self._sizes[tokens.bit_length()].took(threads, seconds)


class _Size:
    def __init__(self, most: int) -> None:
        self._seconds: dict[int, float | None] = {most: None, 1: None}
        self._best = most
        self._until_trial = 0.0

    def choose(self) -> int:
        untried = next((threads for threads, seconds in self._seconds.items() if seconds is None), None)
        if untried is not None:
            return untried
        self._until_trial -= 1
        return self._best if self._until_trial > 0 else self._other

    @property
    def _other(self) -> int:
        return next(threads for threads in self._seconds if threads != self._best)

    def took(self, threads: int, seconds: float) -> None:
        before = self._seconds[threads]
        if before is not None and threads == self._best:
            seconds = before + WEIGHT * (min(seconds, MOST * before) - before)
        self._seconds[threads] = seconds
        known = {count: value for count, value in self._seconds.items() if value is not None}
        best = min(known, key=known.__getitem__)
        if best != self._best or self._until_trial <= 0:
            self._until_trial = TRY_EVERY * max(known.values()) / known[best]
        self._best = best
