"""Processes by identity: pid and start time together, so that a pid used again is never signalled."""

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
POLL_S = 0.05


class Process(msgspec.Struct, frozen=True):
    """A process of this boot; ``start_s`` is seconds since boot, as the kernel counts."""

    name: str
    pid: int
    start_s: float


def start_s(pid: int) -> float | None:
    """When process ``pid`` began, seconds since boot; None if it is gone (or a zombie)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *rest = stat.rpartition(")")[2].split()
    return None if state == "Z" else int(rest[18]) / TICKS_PER_S


def alive(process: Process) -> bool:
    """Whether this very process still runs."""
    return start_s(process.pid) == process.start_s


def _signal(process: Process, number: signal.Signals) -> None:
    if alive(process):
        try:
            os.kill(process.pid, number)
        except ProcessLookupError:
            return  # it ended between the look and the signal


def _wait(processes: Sequence[Process], seconds: float) -> list[Process]:
    deadline = time.monotonic() + seconds
    left = [process for process in processes if alive(process)]
    while left and time.monotonic() < deadline:
        time.sleep(POLL_S)
        left = [process for process in left if alive(process)]
    return left


def stop(processes: Sequence[Process], grace_s: float) -> None:
    """End these processes: SIGTERM, after ``grace_s`` a second one (cut off), then SIGKILL."""
    left = list(processes)
    for number, seconds in ((signal.SIGTERM, grace_s), (signal.SIGTERM, grace_s / 2), (signal.SIGKILL, 5.0)):
        for process in left:
            _signal(process, number)
        left = _wait(left, seconds)
        if not left:
            return


class _Record(msgspec.Struct):
    replica: str
    pid: int | None = None
    start_s: float | None = None


def replicas(run: Path) -> list[Process]:
    """The replicas that agents recorded under this run folder and that still run."""
    found = []
    for path in sorted(run.glob("replicas/*/record.json")):
        try:
            record = msgspec.json.decode(path.read_bytes(), type=_Record)
        except (OSError, msgspec.DecodeError):
            continue  # a record that cannot be read names no process
        if record.pid is not None and record.start_s is not None:
            process = Process(record.replica, record.pid, record.start_s)
            if alive(process):
                found.append(process)
    return found
