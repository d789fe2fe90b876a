"""The beat of this moment: what its agent may know of a replica without asking it (vocab.beat)."""

import os
import time
from typing import TYPE_CHECKING

from engine.health.outcome import Outcome
from vocab.beat import Beat

if TYPE_CHECKING:
    from engine.api.service import Service


def beat_of(service: "Service") -> Beat:
    """The state of a service as it is now. Called by other threads; waits for nobody."""
    steps, gate, loaded = service.steps, service.gate, service.loaded
    running, waiting, oldest = steps.queues()
    times = steps.times
    canary, watch = (loaded.canary, loaded.watch) if loaded is not None else (None, None)
    wrong = canary.wrong if canary is not None else None
    return Beat(
        pid=os.getpid(),
        ready=gate.loaded and not gate.failed,
        admitting=not gate.closed_by,
        draining=gate.closed_by == "draining",
        step=times.count,
        tokens=steps.tokens,
        running=running,
        waiting=waiting,
        open_requests=gate.open_requests,
        oldest_wait_since_ns=int(oldest * 1e9),
        last_step_ns=times.last_ns,
        written_ns=time.monotonic_ns(),
        p999_step_ns=times.p999_ns,
        requests_ok=service.ok,
        requests_failed=service.failed,
        kv_ratio=steps.kv_ratio,
        error_code=int(getattr(steps.failure, "error_code", 0) or 0),
        step_began_ns=times.began_ns,
        over_floor=(watch.over_floor if watch is not None else None) or 0.0,
        over_usual=(watch.over_usual if watch is not None else None) or 0.0,
        canaries=canary.runs if canary is not None else 0,
        wrong_product=wrong is not None and wrong.has(Outcome.WRONG_PRODUCT),
        wrong_answer=wrong is not None and wrong.has(Outcome.WRONG_ANSWER),
        wrong_weights=wrong is not None and wrong.has(Outcome.WRONG_WEIGHTS),
    )
