"""NVLink errors up to generation 4 (Xid 74): what the bits of the registers say.

The line reads ``NVLink: fatal error detected on link 14(0x100000, 0x0, …)``: seven words, of which a Hopper GPU fills
the first, third, fourth and fifth with meaning (NVIDIA Xid catalogue, 2025-10, workflow of Xid 74). One action for
every 74 would be wrong: most bits are harmless or the echo of a fault elsewhere.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from vocab.events import Recovery, Severity


class Finding(NamedTuple):
    """What one class of bits means. ``after``: from which time on one link within a day it counts as a fault."""

    reason: str
    severity: Severity
    recovery: Recovery
    after: int = 1
    secondary: bool = False


HARMLESS = Finding("harmless", Severity.INFO, Recovery.NONE)
# The other end of the link, or the switch, has a fault of its own. Alone it is worth a report.
SECONDARY = Finding("secondary", Severity.WARNING, Recovery.CONTACT_SUPPORT, secondary=True)
# The vendor asks for a report from the third on one link on.
PARITY = Finding("hw ecc/parity", Severity.ERROR, Recovery.CONTACT_SUPPORT, after=3)
CONNECTION = Finding("check connections", Severity.WARNING, Recovery.CONTACT_SUPPORT)
SIGNAL = Finding("signal integrity, check mechanicals", Severity.WARNING, Recovery.CONTACT_SUPPORT)
REPEATED = Finding("report if repeated", Severity.WARNING, Recovery.CONTACT_SUPPORT, after=2)
REPORT = Finding("report", Severity.WARNING, Recovery.CONTACT_SUPPORT)
DIAGNOSE = Finding("field diagnostic", Severity.ERROR, Recovery.CONTACT_SUPPORT)
THRESHOLD = Finding("ecc threshold", Severity.INFO, Recovery.NONE)

Bits = Mapping[int, tuple[tuple[tuple[int, ...], Finding], ...]]  # register (counted from 0) -> bits -> what they mean
BITS: Bits = {
    0: (
        ((0, 23, 30), HARMLESS),
        ((1, 20), SECONDARY),
        ((4, 5), PARITY),
        ((8, 9, 12, 16, 17, 24, 28), CONNECTION),
        ((21, 22), SIGNAL),
        ((27, 29), REPEATED),
    ),
    2: (((0, 1, 2, 6), PARITY), ((13, 17, 18), REPORT), ((16, 19), DIAGNOSE)),
    3: (((16, 17, 18), SECONDARY),),
    4: (((18, 19, 21, 22, 24, 25, 27, 28), PARITY), ((20, 23, 26, 29), THRESHOLD)),
}
FEWER = (Severity.INFO, Recovery.NONE)  # a class that has not come often enough yet


class Verdict(NamedTuple):
    """What all bits of one line mean together: the harsher of their classes, each of them named."""

    severity: Severity
    recovery: Recovery
    reasons: tuple[str, ...]
    secondary: bool


def classes(registers: Sequence[str], table: Bits = BITS) -> tuple[Finding, ...]:
    """The classes of the bits that are set, in the order of the table; empty where the table knows none of them."""
    words = [_number(word) for word in registers]
    found: dict[Finding, None] = {}
    for place, rows in table.items():
        word = words[place] if place < len(words) else 0
        found |= dict.fromkeys(finding for bits, finding in rows if any(word >> bit & 1 for bit in bits))
    return tuple(found)


def judge(found: Iterable[Finding], times: dict[str, int]) -> Verdict | None:
    """The verdict on one line; ``times``: how often each class came on this link, this time counted. None: no rule."""
    known = tuple(found)
    if not known:
        return None
    pairs = [
        (finding.severity, finding.recovery) if times.get(finding.reason, 1) >= finding.after else FEWER
        for finding in known
    ]
    return Verdict(
        severity=max((severity for severity, _ in pairs), key=lambda severity: severity.rank),
        recovery=max((recovery for _, recovery in pairs), key=lambda recovery: recovery.rank),
        reasons=tuple(finding.reason for finding in known),
        secondary=all(finding.secondary or finding == HARMLESS for finding in known)
        and any(finding.secondary for finding in known),
    )


def _number(word: str) -> int:
    try:
        return int(word, 16)
    except ValueError:
        return 0
