"""Memory, disk, clock and uptime of the host: figures of ``/proc``, ``statvfs`` and ``adjtimex``, none of a program.

The clock: what the kernel itself knows of it (adjtimex(2), read only). Its offset is told only while somebody keeps
the clock by the kernel's own loop; chrony steers without it, so there the two error bounds are what tells. A system
call filter that forbids adjtimex leaves all of them out.
"""

import ctypes
import os
from pathlib import Path
from typing import Any

Figures = dict[str, Any]

STA_PLL, STA_UNSYNC, STA_NANO = 0x0001, 0x0040, 0x2000  # linux/timex.h
_LONGS = ("offset", "freq", "maxerror", "esterror")


class Timex(ctypes.Structure):
    """``struct timex`` of 64-bit Linux, as far as it is read; the rest is room."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        *((name, ctypes.c_long) for name in _LONGS),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_byte * 256),
    )


def read_machine(proc: Path, state_dir: Path) -> Figures:
    """What is known now."""
    return {**_memory(proc), **_uptime(proc), **_disk(state_dir), **read_clock()}


def _memory(proc: Path) -> Figures:
    wanted = {"MemAvailable": "memory_available_bytes", "MemTotal": "memory_total_bytes"}
    lines = (line.partition(":") for line in _text(proc / "meminfo").splitlines())
    rows = ((wanted[name], value.split()) for name, _, value in lines if name in wanted)
    return {name: int(words[0]) * 1024 for name, words in rows if len(words) == 2 and words[1] == "kB"}


def _uptime(proc: Path) -> Figures:
    words = _text(proc / "uptime").split()
    return {"uptime_s": float(words[0])} if words and words[0].replace(".", "", 1).isdecimal() else {}


def _disk(state_dir: Path) -> Figures:
    try:
        disk = os.statvfs(state_dir)
    except OSError:
        return {}
    return {"state_available_bytes": disk.f_bavail * disk.f_frsize, "state_total_bytes": disk.f_blocks * disk.f_frsize}


def read_clock() -> Figures:
    """The kernel's word on its clock: seconds of offset and of error, and 1 if somebody keeps it."""
    timex = Timex()
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex)) < 0:
        return {}
    kept = not timex.status & STA_UNSYNC
    unit = 1e9 if timex.status & STA_NANO else 1e6
    figures: Figures = {
        "clock_synchronized": int(kept),
        "clock_error_s": timex.esterror / 1e6,
        "clock_max_error_s": timex.maxerror / 1e6,
    }
    if kept and timex.status & STA_PLL:
        figures["clock_offset_s"] = timex.offset / unit
    return figures


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
