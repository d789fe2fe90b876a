"""A replica's pulse: 128 bytes in a file that the engine maps and the agent reads.

Little endian, written in place under a sequence lock (``seq`` is odd while a write is under way), so a
reader never waits and a wedged engine still shows when it last moved. Monotonic times are nanoseconds of
CLOCK_MONOTONIC, which all processes of one boot share; 0 stands for *none*.
"""

import struct

import msgspec

MAGIC = b"CBT1"
SIZE = 128

READY = 1  # weights loaded, warm, able to step
ADMITTING = 2  # takes new requests (unset by a fence or a drain)
DRAINING = 4  # will stop once its open requests have ended
WRONG_PRODUCT = 8  # the last canary's exact product was not what it is
WRONG_ANSWER = 16  # ... its known prompts got another answer than before
WRONG_WEIGHTS = 32  # ... its weights are not what was loaded

# magic, seq, flags, pid; step, tokens; running, waiting, open, canaries;
# oldest wait, last step, written, p99.9 step; ok, failed, timed out; kv ratio, error code;
# beginning of the step under way, step time over its floor, over the usual
_LAYOUT = struct.Struct("<4sIII QQ IIII QQQQ QQQ fi Qff")
assert _LAYOUT.size <= SIZE, _LAYOUT.size


class Beat(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an engine says of itself; counters are cumulative since the process began."""

    pid: int
    ready: bool = False
    admitting: bool = False
    draining: bool = False
    step: int = 0
    tokens: int = 0
    running: int = 0
    waiting: int = 0
    open_requests: int = 0
    oldest_wait_since_ns: int = 0
    last_step_ns: int = 0
    written_ns: int = 0
    p999_step_ns: int = 0
    requests_ok: int = 0
    requests_failed: int = 0
    requests_timed_out: int = 0
    kv_ratio: float = 0.0
    error_code: int = 0
    canaries: int = 0  # runs that compared something
    wrong_product: bool = False
    wrong_answer: bool = False
    wrong_weights: bool = False
    step_began_ns: int = 0  # of the step under way
    over_floor: float = 0.0  # how many times what the hardware allows the latest steps took (median); comparable
    over_usual: float = 0.0  # ... and how many times what they used to take


def pack(beat: Beat, seq: int) -> bytes:
    """The 128 bytes of a beat; ``seq`` must be even (a finished write)."""
    flags = READY * beat.ready | ADMITTING * beat.admitting | DRAINING * beat.draining
    flags |= WRONG_PRODUCT * beat.wrong_product | WRONG_ANSWER * beat.wrong_answer | WRONG_WEIGHTS * beat.wrong_weights
    return _LAYOUT.pack(
        MAGIC,
        seq & 0xFFFFFFFE,
        flags,
        beat.pid,
        beat.step,
        beat.tokens,
        beat.running,
        beat.waiting,
        beat.open_requests,
        beat.canaries,
        beat.oldest_wait_since_ns,
        beat.last_step_ns,
        beat.written_ns,
        beat.p999_step_ns,
        beat.requests_ok,
        beat.requests_failed,
        beat.requests_timed_out,
        beat.kv_ratio,
        beat.error_code,
        beat.step_began_ns,
        beat.over_floor,
        beat.over_usual,
    ).ljust(SIZE, b"\0")


def unpack(raw: bytes) -> Beat | None:
    """The beat in these bytes, or None if they are not a whole one (absent, torn, being written)."""
    if len(raw) < _LAYOUT.size or raw[:4] != MAGIC:
        return None
    (_, seq, flags, pid, step, tokens, running, waiting, opened, canaries, oldest, last, written, p999, ok, failed,
     timed_out, kv, error, began, over_floor, over_usual) = _LAYOUT.unpack_from(raw)  # fmt: skip
    if seq & 1:
        return None
    return Beat(
        pid=pid,
        ready=bool(flags & READY),
        admitting=bool(flags & ADMITTING),
        draining=bool(flags & DRAINING),
        step=step,
        tokens=tokens,
        running=running,
        waiting=waiting,
        open_requests=opened,
        oldest_wait_since_ns=oldest,
        last_step_ns=last,
        written_ns=written,
        p999_step_ns=p999,
        requests_ok=ok,
        requests_failed=failed,
        requests_timed_out=timed_out,
        kv_ratio=kv,
        error_code=error,
        canaries=canaries,
        wrong_product=bool(flags & WRONG_PRODUCT),
        wrong_answer=bool(flags & WRONG_ANSWER),
        wrong_weights=bool(flags & WRONG_WEIGHTS),
        step_began_ns=began,
        over_floor=over_floor,
        over_usual=over_usual,
    )
