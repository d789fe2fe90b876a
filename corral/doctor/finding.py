"""One finding of the doctor."""

from enum import StrEnum

import msgspec


class Verdict(StrEnum):
    """``absent``: not there and not needed here. All but ``ok`` and ``absent`` are something to do."""

    OK = "ok"
    ABSENT = "absent"
    MISSING = "missing"
    WRONG = "wrong"
    UNKNOWN = "unknown"

    @property
    def is_fine(self) -> bool:
        """Whether nothing is to be done."""
        return self in {Verdict.OK, Verdict.ABSENT}


class Finding(msgspec.Struct, frozen=True):
    """What was looked at, what was found, and what to do about it (``how``; empty where nothing is)."""

    area: str
    what: str
    verdict: Verdict
    found: str
    how: str = ""
