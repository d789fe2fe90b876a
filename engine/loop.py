"""The thread that steps: take what came in, schedule, run, settle, publish; sleep when there is nothing.

It owns the scheduler and the runner; nobody else touches them. Others leave work in its inbox and get lists of
Output back through ``publish``, which is called in this thread, once a step.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.core.scheduler import Scheduler
from engine.core.sequence import Finish, Output, Sequence
from engine.health.shedding import StepBudget
from engine.health.verdicts import is_out_of_memory
from engine.metrics import EngineMetrics
from engine.pulse import StepTimes
from vocab.clock import Clock
from vocab.errors import CorralError

if TYPE_CHECKING:
    from engine.core.flight import Flight, Flights
    from engine.loading import Loaded

log = logging.getLogger(__name__)

Command = Callable[[Scheduler], list[Output]]


class StepLoop:
    """The step loop of one process. ``load`` runs in its thread, so that the server answers meanwhile."""

    def __init__(self, load: "Callable[[], Loaded]", metrics: EngineMetrics, clock: Clock) -> None:
        self.times = StepTimes()
        self.tokens = 0
        self.failure: BaseException | None = None
        self._load = load
        self._metrics = metrics
        self._clock = clock
        self._inbox: deque[tuple[Command, Sequence | None]] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._settled_ns = 0  # perf_counter
        self._scheduler: Scheduler | None = None
        self._thread = threading.Thread(target=self._run, name="step-loop", daemon=True)
        self._publish: Callable[[list[Output]], None] = lambda _: None
        self._loaded: Callable[[Loaded], None] = lambda _: None
        self._failed: Callable[[], None] = lambda: None
        self.after_step: Callable[[], None] = lambda: None
        """Called in the loop's thread when a step has ended."""

    def start(self, *, loaded: "Callable[[Loaded], None]", publish: Callable[[list[Output]], None],
              failed: Callable[[], None]) -> None:  # fmt: skip
        """Load, say ``loaded``, then step. All three are called in the loop's thread."""
        self._loaded, self._publish, self._failed = loaded, publish, failed
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the thread lives (it may be loading) and has not failed."""
        return self._thread.is_alive() and self.failure is None

    def submit(self, sequence: Sequence) -> None:
        """Let a sequence wait for its turn."""

        def add(scheduler: Scheduler) -> list[Output]:
            scheduler.add(sequence)
            return []

        self._leave(add, sequence)

    def cancel(self, id: str, finish: Finish) -> None:  # noqa: A002 - a plain id
        """Forget a sequence and free its blocks. Nothing is published for it; it is counted as ``finish``."""

        def forget(scheduler: Scheduler) -> list[Output]:
            sequence = scheduler.cancel(id)
            if sequence is not None:
                self._metrics.finished(sequence, finish)
            return []

        self._leave(forget)

    def ask(self, something: Callable[[], None]) -> None:
        """Call ``something`` in the loop's thread, between two steps."""

        def call(_: Scheduler) -> list[Output]:
            something()
            return []

        self._leave(call)

    def abort_all(self) -> None:
        """End everything with what it has."""

        def abort(scheduler: Scheduler) -> list[Output]:
            gone = scheduler.cancel_all()
            for sequence in gone:
                self._metrics.finished(sequence, Finish.ABORT)
            return [Output(sequence.id, None, Finish.ABORT) for sequence in gone]

        self._leave(abort)

    def close(self, timeout_s: float) -> bool:
        """Stop after the step under way; False if the thread did not end in time."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _leave(self, command: Command, sequence: Sequence | None = None) -> None:
        with self._wake:
            self._inbox.append((command, sequence))
            self._wake.notify()

    def queues(self) -> tuple[int, int, float]:
        """(running, waiting, monotonic arrival of the oldest waiting or 0.0), also while a step hangs."""
        incoming = [one for _, one in tuple(self._inbox) if one is not None]
        scheduler = self._scheduler
        waiting = incoming if scheduler is None else [*tuple(scheduler.waiting), *incoming]
        oldest = min((one.timing.arrived for one in waiting), default=0.0)
        return 0 if scheduler is None else len(scheduler.running), len(waiting), oldest

    @property
    def kv_ratio(self) -> float:
        """Share of the cache's blocks in use, 0 to 1."""
        return 0.0 if self._scheduler is None else self._scheduler.pool.used_ratio

    def _run(self) -> None:
        try:
            loaded = self._load()
            self._scheduler = loaded.scheduler
            self._loaded(loaded)
            budget = StepBudget(loaded.scheduler.step_tokens)
            flights = loaded.flights()
            while self._wait_for_work(loaded):
                self._take_inbox(loaded.scheduler)
                watched = loaded.canary is not None and loaded.canary.wanted
                step = None if watched and flights.busy else loaded.scheduler.schedule()  # it runs between steps
                if step is not None:
                    self.times.begin()
                    flights.launch(step, time.perf_counter_ns())
                flight = flights.due(more=step is not None)
                if flight is not None:
                    self._try(loaded, flights, flight, budget)
                if loaded.canary is not None and loaded.canary.wanted and not flights.busy:
                    loaded.canary.piece()
        except CorralError as error:
            self._fail(error)
        except Exception as error:
            log.exception("the step loop failed; this process cannot serve any more")
            self._fail(error)

    def _wait_for_work(self, loaded: "Loaded") -> bool:
        """Sleep until there is work, True, or the end. What comes meanwhile waits for one piece of a canary at most."""
        rest_s: float | None = 0.0
        while True:
            with self._wake:
                if self._wake.wait_for(lambda: self._closing or self._inbox or loaded.scheduler.busy, rest_s):
                    return not self._closing
            rest_s = loaded.canary.idle() if loaded.canary is not None else None

    def _try(self, loaded: "Loaded", flights: "Flights", flight: "Flight", budget: StepBudget) -> None:
        """Step; without memory for it nothing has been booked, and smaller steps compute the same."""
        try:
            self._step(loaded, flight)
            budget.went_well()
        except Exception as error:
            if not is_out_of_memory(error) or not budget.shrink():
                raise
            for step in (flight.step, *flights.abandon()):
                loaded.scheduler.withdraw(step)
            self._metrics.ran_short()
            log.warning("no memory for a step; it is cut in halves", extra={"tokens": budget.now, "why": str(error)})
        loaded.scheduler.step_tokens = budget.now

    def _take_inbox(self, scheduler: Scheduler) -> None:
        outputs: list[Output] = []
        while self._inbox:
            outputs += self._inbox[0][0](scheduler)
            self._inbox.popleft()  # only now: a reader of ``queues`` never misses one
        if outputs:
            self._publish(outputs)

    def _step(self, loaded: "Loaded", flight: "Flight") -> None:
        self.times.begin()
        step = flight.step
        began = max(flight.launched_ns, self._settled_ns)  # scheduled ahead, it waits for the one before
        started = self._clock.monotonic() - (time.perf_counter_ns() - began) / 1e9
        outputs = loaded.scheduler.settle(step, flight.land())
        if loaded.canary is not None and any(span.sequence.corrupt for span in step.spans):
            loaded.canary.suspect()
        self._settled_ns = time.perf_counter_ns()
        self.times.add(self._settled_ns - began)
        self.tokens += len(outputs)
        self._metrics.stepped(step, outputs, loaded.scheduler, started, self._clock.monotonic())
        self._publish(outputs)
        self.after_step()

    def _fail(self, error: BaseException) -> None:
        self.failure = error
        self._failed()
