"""NVML field values in bulk: one call for many figures of one GPU, in an array that is made once.

Each entry has its own return code. The struct of nvml.h has had the same forty bytes since it exists.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from ctypes import byref, sizeof
from typing import Any

import msgspec

from agent.sources.child import CallFailed
from agent.sources.nvml_call import Caller, error_name
from agent.sources.units import same

_ENTRY = struct.Struct("<IIqqiIQ")  # field, scope, stamp, latency, type of the value, return code, value
_DOUBLE, _UNSIGNED, _SIGNED, _SHORT, _SIGNED_64 = 0, 1, 5, 6, 4


class FieldRow(msgspec.Struct, frozen=True):
    """One NVML field value and the reading that it becomes; ``scope`` is a link, a lane or a power domain."""

    field: int
    name: str
    convert: Callable[[Any], Any] = same
    scope: int = 0


class FieldBatch:
    """The array for these rows, of one GPU."""

    def __init__(self, api: Any, rows: Sequence[FieldRow]) -> None:
        self.rows = tuple(rows)
        self._array = (api.c_nvmlFieldValue_t * len(self.rows))()
        assert sizeof(self._array) == _ENTRY.size * len(self.rows), "nvmlFieldValue_t is another than we know"
        for entry, row in zip(self._array, self.rows, strict=True):
            entry.fieldId, entry.scopeId = row.field, row.scope

    def take(self, caller: Caller, handle: Any) -> Iterator[tuple[FieldRow, str | None, Any]]:
        """(row, error, value in base units) of each. Raises CallFailed if the call as a whole fails."""
        if not self.rows:
            return
        try:
            caller.raw("nvmlDeviceGetFieldValues", handle, len(self.rows), byref(self._array))
        except CallFailed as failed:
            yield from ((row, failed.error, None) for row in self.rows)
            return
        for row, entry in zip(self.rows, _ENTRY.iter_unpack(self._array), strict=True):
            code = entry[5]
            yield (row, error_name(code), None) if code else (row, None, row.convert(_value(entry[4], entry[6])))


def _value(kind: int, bits: int) -> int | float:
    """The union's member by its type (nvmlValueType_t)."""
    if kind == _UNSIGNED:
        return bits & 0xFFFFFFFF
    if kind == _DOUBLE:
        return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])
    if kind == _SIGNED:
        return (bits & 0xFFFFFFFF) - ((bits & 0x80000000) << 1)
    if kind == _SIGNED_64:
        return bits - ((bits >> 63) << 64)
    return bits & 0xFFFF if kind == _SHORT else bits
