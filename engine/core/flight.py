"""Steps that were launched and not settled yet: one, or two where the next is scheduled while one is computed.

The next step then needs no word from the host: it finds the tokens that the one before samples where they are, on
the device (``Runner.launch``). On CUDA launching does not wait; on the CPU a thread computes.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol

import msgspec
import torch

from engine.core.sampler import Sampled
from engine.core.sequence import Step


class Launcher(Protocol):
    """What computes steps. Called by one thread."""

    def launch(self, step: Step) -> Sampled:
        """Compute a step, without waiting for its device."""
        ...

    def run(self, step: Step) -> list[int]:
        """Compute a step; its sampled tokens."""
        ...


class Flight(msgspec.Struct, frozen=True):
    """A step under way. ``launched_ns``: perf_counter; ``land`` waits for its sampled tokens."""

    step: Step
    launched_ns: int
    land: Callable[[], list[int]]


class Flights:
    """The steps under way, oldest first; ``ahead`` of them at most beside the one that is waited for."""

    def __init__(self, runner: Launcher, *, ahead: bool, on_cuda: bool) -> None:
        self._runner = runner
        self._ahead = int(ahead)
        self._under_way: deque[Flight] = deque()
        self._thread: ThreadPoolExecutor | None = None
        if ahead and not on_cuda:  # threads of an operation are counted by thread
            self._thread = ThreadPoolExecutor(1, "compute", torch.set_num_threads, (torch.get_num_threads(),))

    @property
    def busy(self) -> bool:
        """Whether any step is under way."""
        return bool(self._under_way)

    def launch(self, step: Step, now_ns: int) -> None:
        """Begin a step; without ``ahead`` it is computed when it lands."""
        self._under_way.append(Flight(step, now_ns, self._begin(step)))

    def _begin(self, step: Step) -> Callable[[], list[int]]:
        if not self._ahead:
            return lambda: self._runner.run(step)
        if self._thread is not None:
            future: Future[list[int]] = self._thread.submit(self._runner.run, step)
            return future.result
        return self._runner.launch(step).sent().host

    def due(self, *, more: bool) -> Flight | None:
        """The step that must land now: the oldest, once no ``more`` can be launched before it."""
        if self._under_way and (len(self._under_way) > self._ahead or not more):
            return self._under_way.popleft()
        return None

    def abandon(self) -> list[Step]:
        """Wait for what is still under way, and forget it."""
        gone = [flight.step for flight in self._under_way]
        while self._under_way:
            with suppress(RuntimeError):  # what has befallen the one before befalls these
                self._under_way.popleft().land()
        return gone
