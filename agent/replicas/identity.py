"""Which process is which: pid, start time and boot id together, so that a pid used again is never signalled.

Everything is read from /proc, which any user may do. A zombie has ended: it counts as gone.
"""

import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

PROC = Path("/proc")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Identity(msgspec.Struct, frozen=True):
    """One process for ever: ``start_s`` is seconds since the boot ``boot_id``, as the kernel counts."""

    pid: int
    start_s: float
    boot_id: str


class Stat(msgspec.Struct, frozen=True):
    """What /proc/PID/stat says: state letter, session, seconds from boot to its start."""

    state: str
    session: int
    start_s: float


def boot_id() -> str:
    """The id of the running boot."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def stat(pid: int) -> Stat | None:
    """The process ``pid`` as it is now, or None if there is none."""
    text = raw(f"{PROC}/{pid}/stat")
    if text is None:
        return None
    # The name stands in parentheses and may hold anything; the fields after it are numbers from the third on.
    fields = text.rpartition(b")")[2].split()
    return Stat(state=fields[0].decode(), session=int(fields[3]), start_s=int(fields[19]) / TICKS_PER_S)


def raw(path: str) -> bytes | None:
    """What a file of up to 64 KiB holds, or None if it cannot be read: in the fewest calls, for it is asked often."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(handle, 65_536)
    except OSError:  # the process has just ended
        return None
    finally:
        os.close(handle)


def alive(identity: Identity, boot: str) -> bool:
    """Whether this very process still runs in the boot ``boot``."""
    return identity.boot_id == boot and is_it(identity, stat(identity.pid))


def is_it(identity: Identity, seen: Stat | None) -> bool:
    """Whether what was seen under its pid in this boot is this very process, and runs."""
    return seen is not None and seen.state not in "ZX" and seen.start_s == identity.start_s


def pids() -> Iterator[int]:
    """Every process of the machine."""
    return (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())


def arguments(pid: int) -> tuple[str, ...]:
    """The command line of a process; empty if it is gone or a kernel thread."""
    try:
        raw = (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(raw.decode(errors="replace").rstrip("\0").split("\0"))


def find(marks: Mapping[str, str], boot: str) -> Identity | None:
    """The living leader of a session that was started with all these in its environment, if there is one.

    The beat's path makes it ours: two agents of one machine may use the same names, never the same file.
    """
    wanted = {f"{name}={value}".encode() for name, value in marks.items()}
    for pid in pids():
        seen = stat(pid)
        if seen is None or seen.state in "ZX" or seen.session != pid:
            continue
        if wanted.issubset(_environment(pid)):
            return Identity(pid, seen.start_s, boot)
    return None


def survivors(identity: Identity, mark: str, boot: str) -> tuple[int, ...]:
    """Living processes of the session that ``identity`` led which carry ``mark`` in their environment.

    A killed server may leave workers that keep the GPU's memory. The mark proves that we started them;
    one whose environment cannot be read is not ours to name.
    """
    if identity.boot_id != boot:
        return ()
    found = []
    for pid in pids():
        seen = stat(pid)
        if seen is None or seen.state in "ZX" or seen.session != identity.pid or seen.start_s < identity.start_s:
            continue
        if carries(pid, mark):
            found.append(pid)
    return tuple(sorted(found))


def carries(pid: int, mark: str) -> bool:
    """Whether ``mark`` (NAME=VALUE) stands in the environment with which ``pid`` was started."""
    return mark.encode() in _environment(pid)


def variable(pid: int, name: str) -> str | None:
    """What ``name`` was in the environment with which ``pid`` was started; None if it was not set or cannot be read."""
    start = f"{name}=".encode()
    found = next((word for word in _environment(pid) if word.startswith(start)), None)
    return None if found is None else found[len(start) :].decode(errors="replace")


def _environment(pid: int) -> list[bytes]:
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def family(pid: int) -> tuple[int, ...]:
    """A process and all that descend from it, itself first, as far as the kernel lists children."""
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop(0)
        found.append(one)
        try:
            tasks = sorted(os.listdir(f"{PROC}/{one}/task"))  # noqa: PTH208 - a path for each thread costs more than reading it
        except OSError:
            continue
        for task in tasks:  # None: the thread ended, or this kernel keeps no list of children
            waiting += map(int, (raw(f"{PROC}/{one}/task/{task}/children") or b"").split())
    return tuple(dict.fromkeys(found))


def send(identity: Identity, number: signal.Signals, boot: str) -> bool:
    """Send a signal to this very process alone; False if it is gone. A process that does not match gets none.

    The descriptor pins the process between the check and the signal.
    """
    try:
        handle = os.pidfd_open(identity.pid)
    except OSError:
        return False
    try:
        if not alive(identity, boot):
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def send_to_session(identity: Identity, mark: str, number: signal.Signals, boot: str) -> int:
    """Send a signal to the process and to what its session left behind; how many got it."""
    reached = int(send(identity, number, boot))
    for pid in survivors(identity, mark, boot):
        seen = stat(pid)
        if pid != identity.pid and seen is not None:
            reached += send(Identity(pid, seen.start_s, boot), number, boot)
    return reached
