"""How processes end, told from their exit: what each signal means for an engine."""

import signal

import msgspec

SHELL = 128  # shells and container runtimes say 128 + signal where a parent would see the signal itself


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
CRASHED = Ending("crashed_by_itself", "ended by itself")
UNSEEN = Ending("unseen", "nobody saw how it ended")


def signal_of(code: int | None, number: int | None) -> int | None:
    """The signal that ended a process: as its parent saw it, or as a shell tells it."""
    if number is not None:
        return number
    return code - SHELL if code is not None and SHELL < code <= SHELL + signal.SIGRTMAX else None


def ending(code: int | None, number: int | None) -> Ending:
    """What an exit code or a signal says."""
    by = signal_of(code, number)
    if by is not None:
        return _SIGNALS.get(by, CRASHED)
    return UNSEEN if code is None else CRASHED
