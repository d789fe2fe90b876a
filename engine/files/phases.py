"""How long each phase of loading takes, and how far it has come: a line every few seconds while it lasts."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from engine.files.checkpoint import Checkpoint

log = logging.getLogger(__name__)

PHASES = ("open", "read", "place", "graph", "warm_up", "measure", "canary")
"""Heads and tokenizer; tensors from disk, dequantised; converted, copied to the device, packed; graphs captured, on
CUDA; a first step; rates; canary."""
EVERY_S = 5.0


class Phases:
    """Seconds by phase, of one start."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(PHASES, 0.0)

    @contextmanager
    def of(self, phase: str) -> Iterator[None]:
        """What happens inside belongs to this phase; a phase inside of another is taken from it."""
        began, inner = time.perf_counter(), sum(self.seconds.values())
        try:
            yield
        finally:
            self.seconds[phase] += time.perf_counter() - began - (sum(self.seconds.values()) - inner)


class TimedCheckpoint:
    """A checkpoint whose reading is timed and told of."""

    def __init__(self, inner: Checkpoint, phases: Phases, parameters: int) -> None:
        self._inner = inner
        self._phases = phases
        self._parameters = parameters
        self._read = 0
        self._told_at = time.perf_counter()

    def parts(self, name: str) -> tuple[str, ...]:
        """See Checkpoint."""
        return self._inner.parts(name)

    def read(self, part: str) -> torch.Tensor:
        """See Checkpoint."""
        with self._phases.of("read"):
            tensor = self._inner.read(part)
        self._read += tensor.numel()
        now = time.perf_counter()
        if now - self._told_at >= EVERY_S:
            self._told_at = now
            log.info("loading", extra={"share": round(self._read / self._parameters, 2), "tensor": part})
        return tensor

    def extras(self) -> dict[str, torch.Tensor]:
        """See Checkpoint."""
        return self._inner.extras()
