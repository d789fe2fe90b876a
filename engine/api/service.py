"""One replica's work without its HTTP: requests go in, pieces of text come out, and all ends in an exit code."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from engine.api.answer import Choice, Piece
from engine.api.answers import Answers
from engine.api.gate import Gate, Unavailable
from engine.api.requests import BadRequest
from engine.config import EngineConfig
from engine.core.sequence import Finish
from engine.health.outcome import Run
from engine.health.verdicts import exit_of, last_words
from engine.loop import StepLoop
from engine.metrics import EngineMetrics
from vocab.catalogue.exits import EngineExit
from vocab.clock import Clock
from vocab.errors import CorralError
from wire.notify import notify

if TYPE_CHECKING:
    from engine.loading import Loaded

log = logging.getLogger(__name__)

LAST_WORDS_S = 3.0  # for answers that were cut off to be written out


class Service:
    """The requests of one replica, from the gate to the last piece. Lives in the HTTP loop's thread."""

    def __init__(self, config: EngineConfig, load: "Callable[[], Loaded]", clock: Clock) -> None:
        self.config = config
        self.gate = Gate()
        self.metrics = EngineMetrics(config)
        self.steps = StepLoop(load, self.metrics, clock)
        self.loaded: Loaded | None = None
        self.ok = 0
        self.failed = 0
        self.farewell = ""  # why the process ends, where something ended it
        self._clock = clock
        self._answers = Answers(config.replica, self.steps)
        self._changed = asyncio.Event()
        self._started = clock.monotonic()
        self.metrics.refresh = self._refresh_metrics
        self.on_change: Callable[[], None] = lambda: None
        """Called when the state that others route by has changed: the beat must not lag behind /ready."""

    def start(self) -> None:
        """Begin to load, then to step. Call it in the running event loop."""
        call = partial(_call_in, asyncio.get_running_loop())
        self.steps.start(
            loaded=lambda loaded: call(self._take_model, loaded, lambda run: call(self._take_canary, run)),
            publish=lambda outputs: call(self._answers.deliver, outputs),
            failed=lambda: call(self._take_failure),
        )

    # ---- what the step loop's thread tells ----

    def _take_model(self, loaded: "Loaded", told: Callable[[Run], None]) -> None:
        seconds = self._clock.monotonic() - self._started
        self.loaded = loaded
        self.gate.loaded = True
        self.metrics.loaded(seconds, loaded.phases, loaded.cache)
        if loaded.watch is not None:
            self.metrics.roofline.begin(loaded.watch)
        if loaded.canary is not None:
            loaded.canary.done = told
            if loaded.canary.last is not None:
                self._take_canary(loaded.canary.last)
        self.on_change()
        notify("READY=1")
        phases = {f"{name}_s": round(took, 2) for name, took in loaded.phases.items()}
        log.info("ready", extra={"replica": self.config.replica, "load_s": round(seconds, 2), **phases,
                                 "max_len": loaded.max_len})  # fmt: skip

    def _take_canary(self, run: Run) -> None:
        self.metrics.canary_ran(run)
        self.gate.corrupt |= run.outcome.is_wrong  # no later run takes it back: only another process, or a person
        self.on_change()

    def _take_failure(self) -> None:
        self.gate.failed = True
        self.on_change()
        self._answers.end_all(Finish.ERROR)
        self._changed.set()

    # ---- what the HTTP side asks ----

    @contextmanager
    def entered(self, *, panic: bool) -> Iterator["Loaded"]:
        """A request's stay, from the gate to the last byte of its answer. Raises Unavailable."""
        try:
            self._check_room(1, max(self.gate.open_requests, len(self._answers)))  # some prompts are still being read
            self.gate.enter(panic=panic)
        except Unavailable as error:
            self.metrics.refused(error.code)
            raise
        try:
            assert self.loaded is not None
            yield self.loaded
        finally:
            self.gate.leave()
            self._changed.set()

    def _check_room(self, more: int, inside: int) -> None:
        if inside + more > self.config.max_running + self.config.max_waiting:
            raise Unavailable("queue_full")

    def answer(self, choices: list[Choice]) -> AsyncGenerator[tuple[int, Piece], None]:
        """(number of the choice, piece) of an answer. Raises Unavailable, and BadRequest for what never fits."""
        assert self.loaded is not None
        self.gate.check_begun()  # it may have failed, or been cut off, while the prompt was read
        most = self.config.max_running + self.config.max_waiting
        if len(choices) > most:
            raise BadRequest(f"n x prompts: {len(choices)} answers are asked for, at most {most} fit", param="n")
        try:
            self._check_room(len(choices), len(self._answers))
        except Unavailable as error:
            self.metrics.refused(error.code)
            raise
        return self._answers.pieces(choices, self.loaded.tokenizer, self._clock.monotonic())

    def booked(self, finish: Finish) -> None:
        """An answer has been written out whole, or will never be."""
        if finish in {Finish.STOP, Finish.LENGTH}:
            self.ok += 1
        else:
            self.failed += 1

    def drain(self, *, leave: bool, ttl_s: float, reason: str) -> None:
        """Admit nothing new; with ``leave`` also exit when the open requests have ended, in ``ttl_s`` at the latest."""
        if leave:
            self.gate.exit(self._clock.monotonic() + ttl_s)
            notify("STOPPING=1")
        else:
            self.gate.fence()
        self.on_change()
        log.info("draining" if leave else "fenced",
                 extra={"reason": reason, "open": self.gate.open_requests, "ttl_s": ttl_s})  # fmt: skip
        self._changed.set()

    def lift(self) -> None:
        """Admit again after a fence. Raises Refused if the process is going to exit."""
        self.gate.lift()
        self.on_change()
        log.info("admitting again")

    def exit_in_s(self) -> float | None:
        """Seconds that the open requests still have, None if nobody asked for an exit."""
        return None if self.gate.exit_at is None else max(0.0, self.gate.exit_at - self._clock.monotonic())

    async def check(self, timeout_s: float) -> Run | None:
        """A whole run of the canary that begins now, between the steps of what runs; None if it did not end in time."""
        canary = self.loaded.canary if self.loaded is not None else None
        if canary is None:
            raise Unavailable(self.gate.closed_by or "loading")
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Run] = loop.create_future()

        def take(run: Run) -> None:
            if not answered.done():  # whoever asked has gone
                answered.set_result(run)

        self.steps.ask(partial(canary.ask, partial(_call_in, loop, take)))
        try:
            async with asyncio.timeout(timeout_s):
                return await answered
        except TimeoutError:
            return None

    def healthy(self) -> tuple[bool, str]:
        """The answer of /health: whether the step loop lives."""
        return self.steps.alive, "ok" if self.steps.alive else "the step loop has stopped"

    # ---- what others see ----

    def _refresh_metrics(self) -> None:
        running, waiting, _ = self.steps.queues()
        self.metrics.stands(self.gate.closed_by or "ready", self.gate.open_requests, running, waiting,
                            self.steps.kv_ratio, self.steps.times.p999_ns / 1e9)  # fmt: skip

    # ---- the end ----

    async def until_over(self) -> int:
        """Wait until this process should end; its exit code. Raises what kept the model from being loaded."""
        while True:
            self._changed.clear()
            failure = self.steps.failure
            if failure is not None:
                await self._last_words()
                if isinstance(failure, CorralError):
                    raise failure
                self.farewell = last_words(failure)
                return exit_of(failure)
            left_s = self.exit_in_s()
            if left_s is not None and self.gate.open_requests == 0:
                return EngineExit.DRAINED
            if left_s == 0.0:
                log.warning("cutting off", extra={"open": self.gate.open_requests})
                self.gate.cut_off = True
                self.steps.abort_all()
                await self._last_words()
                return EngineExit.CUT_OFF
            await self._change(left_s)

    async def _change(self, timeout_s: float | None) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _last_words(self) -> None:
        deadline = asyncio.get_running_loop().time() + LAST_WORDS_S
        while self.gate.open_requests and (left_s := deadline - asyncio.get_running_loop().time()) > 0:
            self._changed.clear()
            await self._change(left_s)


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *arguments: object) -> None:
    """Call it in the thread of ``loop``, from any other."""
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:  # the loop is closed: the process is on its way out
        log.debug("the event loop is gone")
