"""Writes the replica's beat (vocab.beat) into a mapped file: after every step, and at least twice a second.

A thread of its own writes while the step loop waits, loads or hangs: the file then says so, because the times in
it are those of the last real step, and the counts of waiting work are read from the queues themselves.
"""

import mmap
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from vocab.beat import SIZE, Beat, pack
from vocab.errors import ConfigError

PERIOD_S = 0.25  # the contract is 0.5 s; half of it leaves room for a loaded machine

_SEQ = struct.Struct("<I")
_SEQ_AT = 4


class Pulse:
    """The beat file of one process. ``read`` gives the state; it must not wait for the step loop."""

    def __init__(self, path: Path, read: Callable[[], Beat]) -> None:
        self._read = read
        self._seq = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                os.ftruncate(handle, SIZE)  # never shorter: a reader may have the last life's file mapped
                self._map = mmap.mmap(handle, SIZE)
            finally:
                os.close(handle)
        except OSError as error:
            raise ConfigError(f"--beat {path}: cannot be written: {error.strerror}") from error
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self.write()
        self._thread.start()

    def write(self) -> None:
        """Write the state of this moment."""
        with self._lock:
            beat = self._read()
            self._seq = (self._seq + 2) & 0xFFFFFFFE
            _SEQ.pack_into(self._map, _SEQ_AT, self._seq - 1)  # odd: a reader leaves these bytes alone
            raw = pack(beat, self._seq)
            self._map[_SEQ_AT + 4 :] = raw[_SEQ_AT + 4 :]
            self._map[:_SEQ_AT] = raw[:_SEQ_AT]
            _SEQ.pack_into(self._map, _SEQ_AT, self._seq)

    def stop(self) -> None:
        """Write once more and stop; the file stays, with the last state."""
        self._stop.set()
        self._thread.join()
        self.write()

    def _run(self) -> None:
        while not self._stop.wait(PERIOD_S):
            self.write()


class StepTimes:
    """How long the latest steps took: the replica's own measure of *too long*."""

    _KEPT = 4096

    def __init__(self) -> None:
        self._latest: deque[int] = deque(maxlen=self._KEPT)
        self._fresh = 0
        self.p999_ns = 0
        self.count = 0
        self.last_ns = 0
        self.began_ns = 0  # of the step under way, 0 between steps

    def begin(self) -> None:
        """A step begins now: one that hangs shows since when."""
        self.began_ns = time.monotonic_ns()

    def add(self, duration_ns: int) -> None:
        """One step has ended now. The quantile follows every 64 steps, and at once if it grows."""
        self._latest.append(duration_ns)
        self.count += 1
        self.began_ns = 0
        self.last_ns = time.monotonic_ns()
        self._fresh += 1
        if duration_ns > self.p999_ns or self._fresh >= 64:
            self._fresh = 0
            ordered = sorted(self._latest)
            self.p999_ns = ordered[min(len(ordered) - 1, len(ordered) * 999 // 1000)]
