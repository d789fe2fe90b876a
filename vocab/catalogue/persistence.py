"""What of a fault is still there after a reset of the GPU, a reboot, a power cycle.

The plain case follows from what clears the condition: what a reset ends has outlived the work on the GPU, and so on.
Written down is what differs, and what stays behind for good. Sources: the Xid catalogue of 2025-10, NVIDIA's notes on
memory errors (row remapping, page retirement), the open driver.
"""

from enum import StrEnum

from vocab.states import ClearsOn


class Outlives(StrEnum):
    """The most that a fault outlives, in order."""

    NOTHING = "nothing"  # a moment: gone with the process that it hit
    SIGNAL = "signal"  # there as long as its signal shows it, whatever is reset
    WORK = "work"  # it outlives the work on the GPU; a reset ends it
    RESET = "reset"  # a reset does not end it; a reboot does
    REBOOT = "reboot"  # a reboot does not end it either; a power cycle does
    ALL = "all"  # written in the board, worn, broken or set up wrongly: it takes a person


_PLAIN: dict[ClearsOn | None, Outlives] = {
    None: Outlives.NOTHING,
    ClearsOn.SIGNAL: Outlives.SIGNAL,
    ClearsOn.RESET: Outlives.WORK,
    ClearsOn.REBOOT: Outlives.RESET,
    ClearsOn.PERSON: Outlives.ALL,
}

_OUTLIVES: dict[str, Outlives] = {
    "xid:63": Outlives.WORK,
    "xid:92": Outlives.WORK,
    "xid:93": Outlives.ALL,
    "xid:94": Outlives.WORK,
    "xid:110": Outlives.REBOOT,
    "xid:125": Outlives.ALL,
    "xid:160": Outlives.WORK,
    "xid:164": Outlives.ALL,
    "inforom_corrupted": Outlives.ALL,
}

# What stays behind, code by code.
_REMAINS: dict[str, str] = {
    "xid:48": "the lifetime count in the InfoROM",
    "xid:54": "the cable stays unplugged",
    "xid:63": "the pending flag until the reset that makes the repair count; its record in the InfoROM for good",
    "xid:64": "the failure flag in the InfoROM: each driver that loads shows it again",
    "xid:79": "nothing after a reboot that brings the GPU back; if it does not come back, slot, riser, power or board",
    "xid:92": "correctable errors may no longer be counted until a reset: their interrupt is off",
    "xid:93": "the wear of the InfoROM",
    "xid:94": "the bad row is offline; a reset puts a spare in its place",
    "xid:110": "the latch: the GPU answers with made-up values until it has been without power",
    "xid:125": "the damage in the InfoROM",
    "xid:140": "perhaps a repair that was never recorded: look at the remap state after the reset",
    "xid:156": "the repair-pending flag until the reset",
    "xid:157": "the broken cluster: there is no spare",
    "xid:160": "the repair-pending flag until the reset",
    "xid:161": "the broken channel or slice: there is no spare",
    "xid:164": "the wear of the circuit",
    "xid:165": "the wear of the circuit",
    "xid:168": "less memory until the next boot, or until ECC is on and bad rows can be remapped",
    "xid:171": "the lifetime count in the InfoROM",
    "xid:172": "the lifetime count in the InfoROM, and the threshold flag once it is reached: SRAM has no spares",
    "xid:177": "the pending flag until the reset that makes the repair count; its record in the InfoROM for good",
    "ecc_uncorrectable": "the lifetime count in the InfoROM; the volatile one begins anew",
    "ecc_correctable_rate": "the lifetime count in the InfoROM; the volatile one begins anew",
    "sram_threshold": "the flag in the InfoROM",
    "remap_pending": "the record in the InfoROM; the flag goes with the reset",
    "remap_failed": "the failure flag in the InfoROM",
    "retired_pages": "the list of pages in the InfoROM",
    "memory_zombie": "the memory until the GPU is reset, or the host is",
}


def outlives(code: str, clears_on: ClearsOn | None) -> Outlives:
    """What the fault behind a code outlives; ``clears_on`` None: it opens no condition."""
    return _OUTLIVES.get(code) or _PLAIN[clears_on]


def remains(code: str) -> str | None:
    """What stays behind of it, where there is something to know."""
    return _REMAINS.get(code)
