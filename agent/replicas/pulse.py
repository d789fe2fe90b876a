"""What a replica's beat says over time: is it alive, does it step while there is work?

Pure: the beat and the time come in. A busy engine may answer no request for seconds and still step; a
wedged one may answer every probe and never step again. Only the step counter tells them apart.
"""

import msgspec

from vocab.beat import Beat

STALL_S = 5.0  # no step for that long while work waits ...
STALL_STEPS = 5.0  # ... and for that many of its own p99.9 steps: it is stalled
UNTOLD_S = 30.0  # ... or, of an engine that does not tell its steps' times, for that long
SILENT_S = 5.0  # an engine writes its beat every 0.5 s from a thread of its own; older means frozen


class Pulse(msgspec.Struct, frozen=True):
    """The latest whole beat, and when (monotonic) the engine was last seen to step or to have no work."""

    beat: Beat | None = None
    moved_at: float = 0.0


def follow(pulse: Pulse, beat: Beat | None, now: float) -> Pulse:
    """The pulse after a look; a beat that could not be read whole keeps the one before."""
    if beat is None:
        return pulse
    before = pulse.beat
    idle = beat.running == 0 and beat.waiting == 0
    if before is None or before.pid != beat.pid or idle:
        return Pulse(beat, now)
    if before.step == beat.step:
        return Pulse(beat, pulse.moved_at)
    # By the engine's own word, for looks may be a second apart; but not before the beat that did not show the step.
    stepped_at = max(beat.last_step_ns, before.written_ns) / 1e9 if beat.last_step_ns else now
    return Pulse(beat, min(now, max(pulse.moved_at, stepped_at)))


def stepping(pulse: Pulse, now: float, *, by_itself: bool = True) -> bool:
    """False only when it is known to stand still: work without a step, or a beat that has stopped.

    ``by_itself``: the engine writes its beat; else it was asked for it, and no answer may just be a slow one.
    """
    beat = pulse.beat
    if beat is None:
        return True
    if not by_itself:
        return now - pulse.moved_at <= UNTOLD_S
    if now - beat.written_ns / 1e9 > SILENT_S:
        return False
    limit = max(STALL_S, STALL_STEPS * beat.p999_step_ns / 1e9)
    return now - pulse.moved_at <= limit


def oldest_wait_s(beat: Beat, now: float) -> float | None:
    """How long the oldest waiting request has waited, seconds; None if none waits."""
    if beat.waiting == 0 or beat.oldest_wait_since_ns == 0:
        return None
    return max(0.0, now - beat.oldest_wait_since_ns / 1e9)
