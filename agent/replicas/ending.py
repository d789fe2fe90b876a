"""How a replica's process ended, and what it left behind: read from the kernel, named in the words of the wire."""

import os
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from agent.replicas.identity import Identity, Stat, stat
from vocab.catalogue.exits import BY_REASON
from vocab.observations import Exit, ProcessSeen


def reap(process: Identity, seen: Stat | None) -> Exit | None:
    """How our child ended; None while it runs. Of a process that is not our child nothing can be learned.

    ``seen`` is what now has its pid.
    """
    if seen is None or seen.start_s != process.start_s:
        return None  # whoever has this pid now, its end is not ours to take
    try:
        done, status = os.waitpid(process.pid, os.WNOHANG)
    except ChildProcessError:
        return None
    if not done:
        return None
    code = os.waitstatus_to_exitcode(status)
    return Exit(code=code) if code >= 0 else Exit(signal=-code)


def named(exit_: Exit, *, asked: bool, killed: bool, codes: Mapping[int, str] = MappingProxyType({})) -> Exit:
    """The exit with its reason; ``codes`` are the exit codes by which its engine says more.

    Of one that was ordered and that nobody saw, ``asked`` is all that is known.
    """
    if exit_.code is None and exit_.signal is None:
        reason = "asked" if asked else "exit unseen"
    elif exit_.code is not None and codes.get(exit_.code) in BY_REASON:
        reason = codes[exit_.code]
    elif not asked:
        reason = "crashed"
    elif exit_.code == 0:
        reason = "drained"
    elif exit_.code is not None and exit_.code in codes:
        reason = codes[exit_.code]
    else:
        reason = "killed" if killed or exit_.signal is not None else "crashed"
    return msgspec.structs.replace(exit_, reason=reason)


def looked_at(pid: int, replica: str, at: float, node: str) -> ProcessSeen:
    """A process of a replica as it is now."""
    seen = stat(pid)
    return ProcessSeen(
        at=at,
        node=node,
        pid=pid,
        state=seen.state if seen is not None else "gone",
        start_s=seen.start_s if seen is not None else None,
        replica=replica,
    )
