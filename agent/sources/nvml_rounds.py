"""Samples of GPUs that are read at the same moment go to the agent together: it then wakes once a second, not eight
times. Nothing waits for a GPU that does not answer: the next round sends what is there, and then fewer are awaited.
"""

import threading
from collections.abc import Callable

from vocab.observations import GpuSample


class Rounds:
    """Gathers by round; ``send`` gets each round's samples, in one piece if all of them come in time.

    Beside them, the longest time that one of them took to read.
    """

    def __init__(self, send: Callable[[tuple[GpuSample, ...], float], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._round = -1
        self._held: list[GpuSample] = []
        self._longest_s = 0.0
        self._came = 0  # samples of this round
        self._awaited = 1  # as many as came in the round before

    def put(self, number: int, sample: GpuSample, took_s: float = 0.0) -> None:
        """A GPU's sample of round ``number``. One that failed is not held back."""
        with self._lock:
            if number > self._round:
                self._flush()
                self._round, self._awaited, self._came = number, max(1, self._came), 0
            self._held.append(sample)
            self._longest_s = max(self._longest_s, took_s)
            self._came += 1
            if self._came >= self._awaited or sample.error is not None:
                self._flush()

    def _flush(self) -> None:
        held, self._held = tuple(self._held), []
        if held:
            self._send(held, self._longest_s)
            self._longest_s = 0.0
