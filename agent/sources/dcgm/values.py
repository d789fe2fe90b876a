"""One field value of DCGM: a number, a text, or none and why.

A value is none in many ways: by its status, by one of four blanks at the end of each number type (dcgm_structs.h),
by a text in angle brackets. Blanks come with status 0, and a lost GPU gives nothing else.
"""

import math
from typing import Any

import msgspec

from agent.probes.sane import BLANKS
from agent.sources.dcgm.names import status_name

_TEXTS = {
    "<<<NULL>>>": "BLANK",
    "<<<NOT_FOUND>>>": "NOT_FOUND",
    "<<<NOT_SUPPORTED>>>": "NOT_SUPPORTED",
    "<<<NOT_PERM>>>": "NOT_PERMISSIONED",
}
_BLANK = "BLANK"
_END = {"d": 2.0**47, "i": 2**63 - 16, "t": 2**63 - 16}  # from here on nothing is a value, known kind or not


class Value(msgspec.Struct, frozen=True):
    """A field of a GPU: ``number`` or ``text``, or neither and an ``error``. ``at``: epoch seconds, by the engine."""

    gpu: int
    field: int
    at: float
    number: float | None = None
    text: str | None = None
    error: str | None = None


def decode(found: Any) -> Value:
    """From a ``c_dcgmFieldValue_v2``. Its type is looked at first: a number read as a text is an exception."""
    gpu, field, at = int(found.entityId), int(found.fieldId), found.ts / 1e6
    if found.status:
        return Value(gpu, field, at, error=status_name(found.status))
    kind = chr(found.fieldType)
    if kind == "s":
        text = found.value.str
        error = _TEXTS.get(text)
        return Value(gpu, field, at, text=None if error else text, error=error)
    if kind not in _END:
        return Value(gpu, field, at, error=_BLANK)  # blobs are none of our readings
    number = found.value.dbl if kind == "d" else found.value.i64
    error = _why_none(kind, number)
    return Value(gpu, field, at, number=None if error else number, error=error)


def _why_none(kind: str, number: float) -> str | None:
    known = BLANKS.get(number)
    return known or (_BLANK if number >= _END[kind] or math.isnan(number) else None)
