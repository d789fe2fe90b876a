"""NVLink 5 errors (Xids 144 to 150): what the two hex words of a line say.

A line reads ``UNIT Fatal|Nonfatal XC0 i0 Link 13 (intrinfo error_status …)``. The vendor's decode sheet (catalogue of
2025-10) gives an immediate and a second action by unit, sub-code (bits 25 to 20 of intrinfo) and error status. The
number of the unit sits in bits 9 to 5 of intrinfo before driver R575, in bits 6 to 0 from R575 on; the line prints the
unit's name as well, which is what we trust first. Some errors are promoted to a reset by one more bit of intrinfo.
"""

from collections.abc import Sequence
from typing import NamedTuple

from vocab.catalogue.nvlink5_rules import RULES, Rule
from vocab.events import Recovery, Severity

NEW_LAYOUT = 575  # driver branch from which the unit's number is in bits 6 to 0
_PROMOTED_OLD, _PROMOTED_NEW = 1 << 10, 1 << 7  # intrinfo bit of a promoted error, by layout
_FIRST_XID = 143  # the old layout repeats xid - 143 (150: 0) in bits 4 to 0
_LAST_XID = 150


class Verdict(NamedTuple):
    """What one line means. ``bucket`` and ``then`` are the vendor's two actions, None where its sheet has no row."""

    unit: str | None
    subcode: int | None
    severity: Severity
    recovery: Recovery
    bucket: str | None = None
    then: str | None = None
    promoted: bool = False


# XID_154_EVAL: the line asks for nothing by itself; the 154 that follows it says what the driver wants.
_RECOVERY = {"RESET_GPU": Recovery.RESET_GPU, "IGNORE": Recovery.NONE, "XID_154_EVAL": Recovery.NONE}


def decode(
    xid: int,
    *,
    unit: str | None,
    fatal: bool | None,
    intrinfo: int | None,
    error_status: int | None,
    driver: int | None = None,
    rules: Sequence[Rule] | None = None,
) -> Verdict:
    """The verdict on one line; ``driver`` is the branch (570), None if unknown: then both layouts are tried.

    ``rules``: the rows of this Xid; left out, those of the sheet.

    Without a matching row a Fatal line is an error and any other a warning, and a person looks.
    """
    subcode = None if intrinfo is None else intrinfo >> 20 & 0x3F
    rows = RULES.get(xid, ()) if rules is None else rules
    rule = None if intrinfo is None else _find(rows, xid, unit, intrinfo, error_status, driver)
    if rule is None:
        return Verdict(unit, subcode, Severity.ERROR if fatal else Severity.WARNING, Recovery.INVESTIGATE)
    promoted = rule.promotable and _promoted(xid, rule, intrinfo or 0, driver)
    bucket = "RESET_GPU" if promoted else rule.immediate
    return Verdict(
        unit or rule.names[0], subcode, _severity(bucket, fatal), _RECOVERY[bucket], bucket, rule.then, promoted
    )


def _severity(bucket: str, fatal: bool | None) -> Severity:
    """Critical where it is a reset; an ignored one is an error if the line says Fatal, else no more than a note."""
    if bucket == "RESET_GPU":
        return Severity.CRITICAL
    if fatal:
        return Severity.ERROR
    return Severity.INFO if bucket == "IGNORE" else Severity.WARNING


def _find(
    rows: Sequence[Rule], xid: int, unit: str | None, intrinfo: int, error_status: int | None, driver: int | None
) -> Rule | None:
    subcode = intrinfo >> 20 & 0x3F
    rules = [rule for rule in rows if rule.subcode == subcode and _status_fits(rule, error_status)]
    named = [rule for rule in rules if unit in rule.names]
    if named or not rules:
        return named[0] if named else None
    return next((rule for rule in rules if _old(xid, rule, intrinfo, driver) or _new(rule, intrinfo, driver)), None)


def _status_fits(rule: Rule, error_status: int | None) -> bool:
    return not rule.statuses or error_status in rule.statuses


def _old(xid: int, rule: Rule, intrinfo: int, driver: int | None) -> bool:
    """Whether the word names the rule's unit in the layout before R575."""
    fits = intrinfo >> 5 & 0x1F == rule.old_unit and intrinfo & 0x1F == (xid - _FIRST_XID if xid < _LAST_XID else 0)
    return fits and (driver is None or driver < NEW_LAYOUT)


def _new(rule: Rule, intrinfo: int, driver: int | None) -> bool:
    """Whether the word names the rule's unit in the layout from R575 on."""
    return intrinfo & 0x7F == rule.new_unit and (driver is None or driver >= NEW_LAYOUT)


def _promoted(xid: int, rule: Rule, intrinfo: int, driver: int | None) -> bool:
    if _old(xid, rule, intrinfo, driver):
        return bool(intrinfo & _PROMOTED_OLD)
    return _new(rule, intrinfo, driver) and bool(intrinfo & _PROMOTED_NEW)
