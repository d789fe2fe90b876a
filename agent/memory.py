"""What an agent must remember over its own death, as one state record of the spool."""

import logging

import msgspec

from agent.fence import Fences
from agent.judge import Judge
from vocab.errors import InputError

log = logging.getLogger(__name__)

MOST_ANSWERED = 256


class Saved(msgspec.Struct, frozen=True):
    """The judge's snapshot (folds, read position, open conditions), the fences, and orders already answered."""

    judge: bytes
    fences: Fences
    answered: tuple[str, ...] = ()
    since: float | None = None  # when this memory began, on the wall clock


def pack(judge: Judge, fences: Fences, answered: tuple[str, ...], since: float | None = None) -> bytes:
    """The state record."""
    return msgspec.msgpack.encode(Saved(judge.snapshot(), fences, answered[-MOST_ANSWERED:], since))


def unpack(
    raw: bytes | None, node: str, boot_id: str, now: float
) -> tuple[Judge, Fences, tuple[str, ...], float | None]:
    """Judge, fences, answered orders and the age of all that; new ones if there is nothing or of another version."""
    if raw is not None:
        try:
            saved = msgspec.msgpack.decode(raw, type=Saved)
            return Judge.restore(saved.judge), saved.fences, saved.answered, saved.since
        except (msgspec.DecodeError, InputError) as error:
            log.warning("the stored state is of another version: starting anew", extra={"error": str(error)})
    return Judge(node, boot_id), Fences(), (), now
