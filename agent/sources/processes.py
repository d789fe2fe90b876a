"""Processes that hang in the NVIDIA driver, from ``/proc``.

State D alone is normal for moments. *Hangs* is: in D at two looks in a row without having been scheduled between
them (the kernel's own rule for hung tasks), and either inside the driver's code, as far as ``wchan`` may be read, or
one of the driver's own programs. ``cmdline`` and ``environ`` are never read here: they wait for the hung process.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vocab.programs import TOOLS

CODE = ("nv_", "_nv", "nvidia", "uvm_", "rm_", "os_acquire", "osAcquire")  # functions of the driver's modules
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PF_KTHREAD = 0x00200000  # linux/sched.h: a thread of the kernel itself


class Process(NamedTuple):
    """One process in state D; ``switches``: how often it has been scheduled, None if that may not be read."""

    pid: int
    name: str
    parent: int
    start_s: float
    switches: int | None


class Sighting(NamedTuple):
    """What is told of a process that hangs or hung; ``state`` R, S, D, Z or gone."""

    pid: int
    parent: int
    start_s: float
    name: str
    state: str


class Processes:
    """Looks at all processes by turns; ``proc`` is where the kernel tells of them."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._before: dict[int, Process] = {}  # in state D at the last look
        self._hung: dict[int, Process] = {}

    def look(self) -> tuple[int, list[Sighting]]:
        """How many hang in the driver now, and what is news of them: each that hangs, each that no longer does."""
        waiting = {process.pid: process for process in self._in_d()}
        hung = {pid: one for pid, one in waiting.items() if self._before.get(pid) == one and self._is_drivers(one)}
        seen = [_seen(one, "D") for one in hung.values()]
        for pid, one in self._hung.items():
            if pid not in hung:
                seen.append(_seen(one, self._state(one)))
        self._before, self._hung = waiting, hung
        return len(hung), seen

    def _in_d(self) -> Iterator[Process]:
        proc = str(self._proc)
        for name in os.listdir(proc):  # noqa: PTH208 - of thousands: a path for each costs more than reading it
            if name.isdecimal() and _may_be_in_d(f"{proc}/{name}/stat"):
                stat = _stat(self._proc / name / "stat")
                if stat is not None and stat[1][0] == "D" and not int(stat[1][6]) & PF_KTHREAD:
                    yield self._process(int(name), *stat)

    def _process(self, pid: int, name: str, fields: list[str]) -> Process:
        return Process(
            pid=pid,
            name=name,
            parent=int(fields[1]),
            start_s=int(fields[19]) / TICKS_PER_S,
            switches=self._switches(pid),
        )

    def _switches(self, pid: int) -> int | None:
        """Voluntary ones and others together; a process that makes progress is scheduled."""
        lines = (line.partition(":") for line in _text(self._proc / str(pid) / "status").splitlines())
        counts = [int(value) for name, _, value in lines if name.endswith("voluntary_ctxt_switches")]
        return sum(counts) if counts else None

    def _is_drivers(self, process: Process) -> bool:
        where = self._proc / str(process.pid)
        functions = [_text(where / "wchan"), *(line.partition("] ")[2] for line in _text(where / "stack").splitlines())]
        return process.name.startswith(TOOLS) or any(function.startswith(CODE) for function in functions)

    def _state(self, process: Process) -> str:
        """What became of one that hung. Still in D, or in D again, it is running: it was scheduled meanwhile."""
        stat = _stat(self._proc / str(process.pid) / "stat")
        if stat is None or int(stat[1][19]) / TICKS_PER_S != process.start_s or stat[1][0] == "X":
            return "gone"
        return stat[1][0] if stat[1][0] in "SZ" else "R"


def _seen(process: Process, state: str) -> Sighting:
    return Sighting(process.pid, process.parent, process.start_s, process.name, state)


def _may_be_in_d(path: str) -> bool:
    """Whether the state in this file is D; almost never, so nothing else of it is read first."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # it has ended meanwhile, or may not be read
        return False
    try:
        return b") D " in os.read(file, 1024)  # a name that holds this too is looked at again, as a whole
    except OSError:
        return False
    finally:
        os.close(file)


def _stat(path: Path) -> tuple[str, list[str]] | None:
    """The name, which stands in parentheses and may hold anything, and the fields behind it, the state first."""
    name, closed, rest = _text(path).rpartition(")")
    fields = rest.split()
    return (name.partition("(")[2], fields) if closed and len(fields) > 19 else None


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it has ended meanwhile, or may not be read
        return ""
