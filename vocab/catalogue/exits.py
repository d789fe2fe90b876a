"""How processes end, told from their exit: what each signal means for an engine."""

import signal
from enum import IntEnum

import msgspec

SHELL = 128  # shells and container runtimes say 128 + signal where a parent would see the signal itself


class EngineExit(IntEnum):
    """The exit codes of our own engine; by them its agent knows how it ended."""

    DRAINED = 0
    CRASHED = 1
    UNUSABLE = 2  # a flag, a file or the model is wrong
    CUT_OFF = 3  # its time to drain was over before its requests were
    GPU_FAULT = 4
    OUT_OF_MEMORY = 5


class Ending(msgspec.Struct, frozen=True):
    """A verdict in one word, and in a few."""

    verdict: str
    words: str


_SIGNALS: dict[int, Ending] = {
    signal.SIGKILL: Ending("killed", "killed: by the kernel for memory, or by somebody"),
    signal.SIGTERM: Ending("stopped_from_outside", "told to stop by somebody else"),
    signal.SIGINT: Ending("stopped_from_outside", "interrupted by somebody else"),
    signal.SIGHUP: Ending("stopped_from_outside", "its terminal or session went away"),
    signal.SIGABRT: Ending("crashed_by_itself", "aborted by its own check"),
    signal.SIGSEGV: Ending("crashed_by_itself", "touched memory that is not its own"),
    signal.SIGBUS: Ending("crashed_by_itself", "lost memory under its feet: a full shared-memory file, or a device"),
    signal.SIGILL: Ending("crashed_by_itself", "ran an instruction that this processor does not know"),
    signal.SIGFPE: Ending("crashed_by_itself", "divided by zero"),
}
GPU_FAULT, OUT_OF_MEMORY = "gpu fault", "out of memory"  # reasons of an end, where the engine's exit code tells them
BY_REASON: dict[str, Ending] = {
    GPU_FAULT: Ending("killed_by_gpu", "its GPU failed, by its own word"),
    OUT_OF_MEMORY: Ending("out_of_gpu_memory", "there was no memory left for it"),
}
_KILLED = Ending("out_of_memory", "killed by the kernel: its limit of memory, or the machine, was full")
_SENT_AWAY = Ending("stopped_from_outside", "stopped by who gave it its place")
BY_WORD: dict[str, Ending] = {  # reasons of Kubernetes, Docker, systemd and Slurm, in small letters
    "oomkilled": _KILLED,
    "oom-kill": _KILLED,
    "out_of_memory": _KILLED,
    "evicted": _SENT_AWAY,
    "preempted": _SENT_AWAY,
    "cancelled": _SENT_AWAY,
    "nodeshutdown": _SENT_AWAY,
}
CRASHED = Ending("crashed_by_itself", "ended by itself")
UNSEEN = Ending("unseen", "nobody saw how it ended")


def signal_of(code: int | None, number: int | None) -> int | None:
    """The signal that ended a process: as its parent saw it, or as a shell tells it."""
    if number is not None:
        return number
    return code - SHELL if code is not None and SHELL < code <= SHELL + signal.SIGRTMAX else None


def ending(code: int | None, number: int | None, reason: str | None = None) -> Ending:
    """What an exit code, a signal or the engine's own word says."""
    if reason in BY_REASON:
        return BY_REASON[reason]
    if reason is not None and reason.lower() in BY_WORD:
        return BY_WORD[reason.lower()]
    by = signal_of(code, number)
    if by is not None:
        return _SIGNALS.get(by, CRASHED)
    return UNSEEN if code is None else CRASHED
