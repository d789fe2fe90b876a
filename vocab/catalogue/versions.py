"""Combinations of versions that are known to go wrong, each with who published it. No row without a source."""

import re

import msgspec


class KnownBad(msgspec.Struct, frozen=True, kw_only=True):
    """A combination that is known to go wrong. ``source``: where that is published."""

    what: str
    remedy: str
    source: str


class _Drivers(msgspec.Struct, frozen=True):
    """Drivers from ``first`` on and below ``fixed``."""

    first: str
    fixed: str
    bad: KnownBad


_DRIVERS = (
    _Drivers(
        "535",
        "535.104.05",
        KnownBad(
            what="process lists change their form within this series: wrong PIDs, or no processes at all",
            remedy="driver 535.104.05 or newer",
            source="github.com/NVIDIA/nvidia-settings commit 74cae7f (nvml.h of 535.104.05 has version 3 of it back);"
            " wrong PIDs and empty lists before: github.com/XuehaiPan/nvitop issues 75, 88 and 93",
        ),
    ),
    _Drivers(
        "525",
        "525.105.17",
        KnownBad(
            what="GSP RPC time-outs (Xid 119) that this series brought with its first release",
            remedy="driver 525.105.17 or newer",
            source="docs.nvidia.com/datacenter/tesla/pdf/NVIDIA_Data_Center_GPU_Driver_Release_Notes_525_v3.0.pdf,"
            " as quoted in github.com/NVIDIA/open-gpu-kernel-modules issue 446",
        ),
    ),
    _Drivers(
        "570",
        "570.133.20",
        KnownBad(
            what="GPU accounting follows a stale pointer in the kernel (a NULL pointer) since this series began",
            remedy="driver 570.133.20 or newer, or no accounting mode",
            source="docs.nvidia.com/datacenter/tesla/tesla-release-notes-570-133-20, 1.2 Fixed Issues",
        ),
    ),
)
_GSP = KnownBad(
    what="GSP firmware of another release than the driver",
    remedy="install driver and firmware from one release, then reboot",
    source="github.com/NVIDIA/open-gpu-kernel-modules README: kernel modules and GSP firmware of one release",
)


def numbers(version: str) -> tuple[int, ...]:
    """``535.104.05`` as numbers that compare."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:6])


def known_bad(driver: str | None, gsp: str | None = None) -> tuple[KnownBad, ...]:
    """What is known to go wrong with these; nothing of a driver that is not known."""
    if driver is None:
        return ()
    found = tuple(row.bad for row in _DRIVERS if numbers(row.first) <= numbers(driver) < numbers(row.fixed))
    return (*found, _GSP) if gsp and numbers(gsp) != numbers(driver) else found
