"""What a node answers to *validate*: the baseline checks of one GPU, on readings that are newer than the order.

Where these find no problem, work is run on it: the quick active checks, and the medium ones if it is held and empty
(docs/diag.md). That is safe at any time, and twice is as good as once. What cannot be run is not known, no failure.
"""

import asyncio

import msgspec

from agent.checks.baseline import ORDER, baseline
from agent.executor.work import Outcome, Surroundings
from agent.probes.fabric import INCOMPLETE
from vocab.clock import Clock
from vocab.observations import Check, GpuSample
from vocab.states import ActionState

PATIENCE_S = 300.0  # after a boot a driver opens eight GPUs in half a minute, and a fabric registers them in minutes
ACTIVE_S = 540.0  # with the patience within the 900 s of an order; other GPUs of the node may have their turn first
LOOK_S = 0.2


async def validate(around: Surroundings, gpu: str, clock: Clock, settle_s: float) -> Outcome:
    """Check a GPU once every reading of it is newer than now; slow ones come every ``settle_s``."""
    checks = await _checked(around, gpu, clock, settle_s)
    if not checks:
        return Outcome(ActionState.REFUSED, f"no reading of it came within {PATIENCE_S:.0f} s: nothing is known of it")
    if not any(check.result == "problem" for check in checks):
        active = await _active(around, gpu, checks[0])
        checks = tuple(sorted((*checks, *active), key=lambda check: ORDER.index(check.result)))
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


async def _checked(around: Surroundings, gpu: str, clock: Clock, settle_s: float) -> tuple[Check, ...]:
    """The checks once they are final, or as they are when the patience is over; none without a new reading."""
    begun, until = clock.now(), clock.monotonic() + PATIENCE_S
    checks: tuple[Check, ...] = ()
    while not _is_final(checks) and clock.monotonic() < until:
        await asyncio.sleep(LOOK_S)
        sample = around.sample(gpu)
        if sample is not None and _is_new(sample, begun, settle_s):
            checks = baseline(sample, clock.now())
    return checks


async def _active(around: Surroundings, gpu: str, read: Check) -> tuple[Check, ...]:
    """Unknown, if they do not end within an order's time."""
    try:
        async with asyncio.timeout(ACTIVE_S):
            return await around.diagnose(gpu)
    except TimeoutError:
        text = f"they did not end within {ACTIVE_S:.0f} s"
        return (msgspec.structs.replace(read, check="diag", result="unknown", code=None, text=text),)


def _is_new(sample: GpuSample, begun: float, settle_s: float) -> bool:
    return sample.at > begun + (settle_s if sample.error is None else 0.0)


def _is_final(checks: tuple[Check, ...]) -> bool:
    """A fabric that still registers the GPU, and a driver that cannot read it yet, are waited for."""
    problems = [check.code for check in checks if check.result == "problem"]
    if problems:
        return any(code != INCOMPLETE for code in problems)
    return any((check.check, check.result) == ("presence", "pass") for check in checks)
