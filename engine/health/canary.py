"""The canary: does this engine still compute what it computed? At start, on demand, and now and then when idle.

A run is three checks: exact products, the sum of the weights' bits, prompts with known answers. It is cut into
pieces of about a step each; between two pieces the step loop looks for work, and work goes first. So a request waits
for one piece at most, and a run under load is only made when somebody asks for it.

Who asks, and what looks wrong, gets a run that begins afterwards: one under way may have been past the fault.
"""

import logging
import math
from collections.abc import Callable, Iterator

from engine.health.outcome import Outcome, Run, Told
from engine.health.verdicts import is_out_of_memory
from vocab.clock import Clock

log = logging.getLogger(__name__)

Check = Callable[[], Iterator[Told | None]]
Answer = Callable[[Run], None]


class Canary:
    """Runs its checks in pieces. Only the step loop's thread runs them; others read ``last`` and ``runs``."""

    def __init__(self, checks: tuple[Check, ...], clock: Clock, every_s: float) -> None:
        self.last: Run | None = None
        self.runs = 0
        self.wrong: Run | None = None  # the first run that found something: no later one takes it back
        self.done: Callable[[Run], None] = lambda _: None
        self._checks = checks
        self._clock = clock
        self._every_s = every_s
        self._next_at = clock.monotonic()
        self._asked: list[Answer] = []  # who waits for the next run
        self._answering: list[Answer] = []  # ... and for the one under way
        self._pieces: Iterator[Told | None] | None = None
        self._told: list[Told] = []
        self._spent_s = 0.0

    @property
    def wanted(self) -> bool:
        """Whether somebody waits for a run."""
        return bool(self._asked or self._answering)

    def ask(self, answer: Answer = lambda _: None) -> None:
        """Begin a whole run as soon as may be, between the steps of what runs; ``answer`` is called with it."""
        self._asked.append(answer)

    def suspect(self) -> None:
        """Something looked wrong: if runs are made when idle at all, the next one is due now."""
        self._next_at = self._clock.monotonic()

    def whole(self) -> Run:
        """A whole run, now."""
        self.ask()
        while self.wanted:
            self.piece()
        assert self.last is not None
        return self.last

    def idle(self) -> float | None:
        """There is no work: do a piece if one is due; seconds until the next one, None for never."""
        if self._pieces is None and not self.wanted:
            if self._every_s <= 0:
                return None
            left_s = self._next_at - self._clock.monotonic()
            if left_s > 0:
                return left_s
        self.piece()
        return 0.0

    def piece(self) -> None:
        """Do one piece; a run begins or ends with it."""
        began = self._clock.monotonic()
        if self._pieces is None:
            self._told, self._spent_s = [], 0.0
            self._answering, self._asked = self._asked, []
            self._next_at = math.inf
            self._pieces = self._all()
        if next(self._pieces, self) is self:
            self._pieces = None
        self._spent_s += self._clock.monotonic() - began
        if self._pieces is None:
            self._finish()

    def _all(self) -> Iterator[Told | None]:
        """The pieces of all checks; what a check tells at its end is kept."""
        for check in self._checks:
            try:
                for told in check():
                    if told is not None:
                        self._told.append(told)
                    else:
                        yield None
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                self._told.append(Told(Outcome.UNKNOWN, f"no memory for a check: {error}"))

    def _finish(self) -> None:
        now = self._clock.monotonic()
        run = Run(now, self._spent_s, tuple(self._told))
        self.last = run
        self.runs += 1
        self._next_at = min(self._next_at, now + self._every_s)  # sooner where something looked wrong meanwhile
        if run.outcome.is_wrong:
            self.wrong = self.wrong or run
            log.error("canary: this device computes wrong", extra={"outcome": run.outcome.value, "why": run.text})
        else:
            log.info("canary", extra={"outcome": run.outcome.value, "seconds": round(run.seconds, 3)})
        self.done(run)
        answering, self._answering = self._answering, []
        for answer in answering:
            answer(run)
