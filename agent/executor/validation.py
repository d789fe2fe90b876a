"""What a node answers to *validate*: the baseline checks of one GPU, on readings that are newer than the order.

Only reading: it is safe at any time, and twice is as good as once. Checks that run work on the GPU belong beside
``agent.checks.baseline``, and their results into the same list.
"""

import asyncio

from agent.checks.baseline import baseline
from agent.executor.work import Outcome, Surroundings
from vocab.clock import Clock
from vocab.observations import Check, GpuSample
from vocab.states import ActionState

PATIENCE_S = 60.0  # a driver that was just started reads within seconds; one that does not answer by then is unknown
LOOK_S = 0.2


async def validate(around: Surroundings, gpu: str, clock: Clock, settle_s: float) -> Outcome:
    """Check a GPU once every reading of it is newer than now; slow ones come every ``settle_s``."""
    sample = await _fresh(around, gpu, clock, settle_s)
    if sample is None:
        return Outcome(ActionState.REFUSED, f"no reading of it came within {PATIENCE_S:.0f} s: nothing is known of it")
    checks = baseline(sample, clock.now())
    for check in checks:  # problems first
        around.take(check)
    return judged(checks)


def judged(checks: tuple[Check, ...]) -> Outcome:
    """One problem fails it. What could not be checked does not, but without a single pass nothing is proven."""
    problems = [check for check in checks if check.result == "problem"]
    passed = [check.check for check in checks if check.result == "pass"]
    unknown = [check.check for check in checks if check.result == "unknown"]
    if problems:
        return Outcome(ActionState.FAILED, "; ".join(f"{check.check}: {check.text}" for check in problems))
    if "presence" not in passed:
        return Outcome(ActionState.REFUSED, "it could not be read")
    more = f"; not known: {', '.join(unknown)}" if unknown else ""
    return Outcome(ActionState.DONE, f"passed: {', '.join(passed)}{more}")


async def _fresh(around: Surroundings, gpu: str, clock: Clock, settle_s: float) -> GpuSample | None:
    begun, until = clock.now(), clock.monotonic() + PATIENCE_S
    while clock.monotonic() < until:
        sample = around.sample(gpu)
        if sample is not None and sample.at > begun + (settle_s if sample.error is None else 0.0):
            return sample
        await asyncio.sleep(LOOK_S)
    return None
