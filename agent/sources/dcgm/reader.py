"""Reads all GPUs through the host engine: one bulk call a period, one call a GPU for its status.

A lost GPU keeps giving values of status 0, all blank, and no health watch reports it: only its status says so.
A value that the engine has not renewed for three periods is none: an engine that stands still must not look
like a GPU that does.
"""

from collections.abc import Mapping

import msgspec

from agent.sources.dcgm.engine import Engine
from agent.sources.dcgm.names import GPU_FAKE, GPU_OK, GPU_STATUS
from agent.sources.dcgm.values import Value
from agent.sources.dcgm.watches import Watches
from agent.sources.dcgm_fields import XID, FieldRow, reading
from vocab.observations import DriverEvent, GpuIdentity, GpuSample
from vocab.readings import Readings

SLACK_S = 10.0  # the engine's loop is not exact
STALE = "STALE_DATA"
NEVER = "NOT_SUPPORTED"
LOST = frozenset({"GPU_IS_LOST", "RESET_REQUIRED"})


class Reader(msgspec.Struct):
    """``gpus``: by the engine's number. ``local``: its clock is ours, so the age of a value can be told."""

    engine: Engine
    watches: Watches
    gpus: Mapping[int, GpuIdentity]
    local: bool = True
    xid_at: dict[int, float] = {}  # when the last Xid of a GPU was; only later ones are news
    never: frozenset[str] = frozenset()  # readings that no GPU of this node supports: learnt once, not asked again

    def read(self, now: float) -> tuple[list[GpuSample], list[DriverEvent]]:
        """A sample of every GPU, and the Xids since the last read; none if nothing is watched. Raises CallFailed."""
        rows = {row.field: row for row in self.watches.rows}
        fields = [*rows, *self.watches.always]
        found: dict[int, list[Value]] = {number: [] for number in self.gpus}
        if not fields or not found:
            return [], []
        for value in self.engine.values(tuple(self.gpus), fields):
            found[value.gpu].append(value)
        samples = [self._sample(number, values, rows, now) for number, values in found.items()] if rows else []
        self._learn(samples)
        events = [event for number, values in found.items() for event in self._xids(number, values)]
        return samples, events

    def _sample(self, number: int, values: list[Value], rows: Mapping[int, FieldRow], now: float) -> GpuSample:
        gpu = self.gpus[number]
        status = self.engine.status(number)
        error = None if status in {GPU_OK, GPU_FAKE} else GPU_STATUS.get(status, "UNKNOWN")
        error = error or next((value.error for value in values if value.error in LOST), None)
        if error:
            return GpuSample(at=now, gpu=gpu.uuid, pci=gpu.pci, error=error, source="dcgm")
        readings: dict[str, float | int | None] = {}
        errors = {**dict.fromkeys(self.never, NEVER), **self.watches.refused}
        for value in values:
            row = rows.get(value.field)
            if row is None:
                continue
            why = value.error or (STALE if self._is_stale(value, row, now) else None)
            if why or value.number is None:
                errors[row.name] = why or "BLANK"
            else:
                readings[row.name] = reading(row, value.number)
        known = msgspec.convert(readings, Readings)
        return GpuSample(at=now, gpu=gpu.uuid, pci=gpu.pci, readings=known, errors=errors, source="dcgm")

    def _learn(self, samples: list[GpuSample]) -> None:
        read = [sample.errors for sample in samples if sample.error is None]
        if read:
            self.never |= {name for name in read[0] if all(one.get(name) == NEVER for one in read)}

    def _is_stale(self, value: Value, row: FieldRow, now: float) -> bool:
        return self.local and now - value.at > 3 * row.period_s + SLACK_S

    def _xids(self, number: int, values: list[Value]) -> list[DriverEvent]:
        """What field 230 tells. Its first value may be of any age, so it is only the mark for later ones."""
        value = next((value for value in values if value.field == XID), None)
        if value is None:
            return []
        before = self.xid_at.get(number)
        self.xid_at[number] = max(value.at, before or 0.0)
        if before is None or value.number is None or value.at <= before:
            return []
        return [DriverEvent(at=value.at, source="dcgm", gpu=self.gpus[number].uuid, type="xid", data=int(value.number))]
