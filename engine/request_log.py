"""One line a request that has ended, and one a step, for who asks for them (--log-requests, --log-steps)."""

import logging

from engine.core.sequence import Finish, Sequence, Step

log = logging.getLogger(__name__)

EVERY_S = 1.0  # a step's line, at most that often


def request_line(sequence: Sequence, finish: Finish) -> None:
    """What one request took: milliseconds to its first token and from one to the next, and what it found cached."""
    timing, generated = sequence.timing, sequence.generated
    first = timing.first_token - timing.arrived if timing.first_token else None
    decode = timing.last_token - timing.first_token
    each = decode / (generated - 1) if timing.first_token and generated > 1 else None
    log.info(
        "request",
        extra={
            "request": sequence.id,
            "finish": finish.value,
            "prompt_tokens": sequence.prompt_len,
            "cached_tokens": sequence.cached,
            "tokens": generated,
            "ttft_ms": None if first is None else round(first * 1e3, 2),
            "tpot_ms": None if each is None else round(each * 1e3, 3),
            "preemptions": sequence.preemptions,
        },
    )


class StepLines:
    """Tells of one step a second, and of how many there were since."""

    def __init__(self) -> None:
        self._told_at = float("-inf")
        self._steps = 0

    def stepped(self, step: Step, running: int, waiting: int, now: float, seconds: float) -> None:
        """A step has ended at ``now`` (monotonic)."""
        self._steps += 1
        if now - self._told_at < EVERY_S:
            return
        log.info(
            "step",
            extra={
                "steps": self._steps,
                "tokens": step.tokens,
                "spans": len(step.spans),
                "running": running,
                "waiting": waiting,
                "ms": round(seconds * 1e3, 2),
            },
        )
        self._told_at, self._steps = now, 0
