"""Reads one GPU, from the one thread that owns it: what is due, what never works, what failed this time."""

from collections.abc import Iterator, Sequence
from typing import Any

from agent.sources.child import CallFailed
from agent.sources.nvml_call import Caller, error_name
from agent.sources.nvml_errors import LOST, NEVER_SUPPORTED
from agent.sources.nvml_gpm import NAMES, Gpm
from agent.sources.nvml_table import (
    FAST,
    FAST_FIELDS,
    LINK_COUNT_FIELD,
    LINK_FIELDS,
    SLOW,
    SLOW_FIELDS,
    STATIC,
    FieldRow,
    Read,
    Values,
    value_of,
)
from vocab.observations import GpuIdentity, GpuProcess, GpuSample
from vocab.readings import LinkReadings, Readings

SLOW_S = 10.0
STATIC_S = 3600.0


class GpuReader:
    """One GPU through NVML. ``sample`` reads what is due and gives the whole last known picture.

    A read that the board or driver will never support is learnt once and left out (``unsupported``).
    """

    def __init__(self, identity: GpuIdentity, handle: Any, caller: Caller) -> None:
        self.identity = identity
        self.unsupported: set[str] = set()
        self._handle = handle
        self._call = caller
        self._gpm = Gpm()
        self._fast = (*FAST, Read(NAMES, self._gpm.take))
        self._values: Values = {}
        self._errors: dict[str, str] = {}
        self._links: dict[str, LinkReadings] = {}
        self._link_errors: dict[str, dict[str, str]] = {}
        self._link_count: int | None = None
        self._processes: tuple[GpuProcess, ...] | None = None
        self._slow_due = self._static_due = 0.0

    def sample(self, at: float, now: float) -> GpuSample:
        """The GPU at ``at`` (epoch); ``now`` (monotonic) decides what is due. Never raises for NVML's errors."""
        try:
            self._read_due(now)
        except CallFailed as failed:
            self._forget()
            return self._sample(at, failed.error)
        return self._sample(at, None)

    def _read_due(self, now: float) -> None:
        if not self._read(self._fast, FAST_FIELDS):
            raise CallFailed("all reads", next(iter(self._errors.values()), "UNKNOWN"))
        if now >= self._slow_due:
            self._read(SLOW, SLOW_FIELDS)
            self._read_links()
            self._read_processes()
            self._slow_due = now + SLOW_S
        if now >= self._static_due:
            self._read(STATIC, ())
            self._static_due = now + STATIC_S

    def _sample(self, at: float, error: str | None) -> GpuSample:
        one = self.identity
        if error is not None:
            return GpuSample(at=at, gpu=one.uuid, index=one.index, pci=one.pci, error=error, source="nvml")
        return GpuSample(
            at=at,
            gpu=one.uuid,
            index=one.index,
            pci=one.pci,
            readings=Readings(**self._values),
            errors=dict(self._errors),
            links=self._links,
            link_errors=self._link_errors,
            processes=self._processes,
            source="nvml",
        )

    def _forget(self) -> None:
        """Nothing known before an outage is shown after it."""
        self._values.clear()
        self._errors.clear()
        self._links, self._link_errors, self._processes = {}, {}, None
        self._slow_due = self._static_due = 0.0
        self._gpm.forget()

    # reads

    def _read(self, reads: Sequence[Read], fields: Sequence[FieldRow]) -> int:
        """Make these reads; returns how many calls came back well. Raises CallFailed if the GPU is lost."""
        good = sum(self._read_one(read) for read in reads if not self.unsupported.issuperset(read.names))
        wanted = [row for row in fields if row.name not in self.unsupported]
        return good + (self._read_fields(wanted) if wanted else 0)

    def _read_one(self, read: Read) -> int:
        try:
            found = read.take(self._call, self._handle)
        except CallFailed as failed:
            for name in read.names:
                self._fail(name, failed.error)
            return 0
        for name in read.names:
            self._errors.pop(name, None)
            if name not in found:
                self._values.pop(name, None)
        self._values.update(found)
        return 1

    def _fail(self, name: str, error: str) -> None:
        """A reading has no value now, and perhaps never. Raises CallFailed if that means the GPU is gone."""
        if error in LOST:
            raise CallFailed(name, error)
        self._values.pop(name, None)
        if error in NEVER_SUPPORTED:
            self.unsupported.add(name)
            self._errors.pop(name, None)
        else:
            self._errors[name] = error

    def _fields(self, wanted: Sequence[tuple[int, int]]) -> Sequence[Any]:
        return self._call("nvmlDeviceGetFieldValues", self._handle, wanted)  # type: ignore[no-any-return]  # ctypes array

    def _read_fields(self, rows: Sequence[FieldRow]) -> int:
        try:
            found = self._fields([(row.field, row.scope) for row in rows])
        except CallFailed as failed:
            for row in rows:
                self._fail(row.name, failed.error)
            return 0
        for row, field in zip(rows, found, strict=True):
            if field.nvmlReturn:
                self._fail(row.name, error_name(field.nvmlReturn))
            else:
                self._errors.pop(row.name, None)
                self._values[row.name] = value_of(field, row.convert)
        return 1

    def _read_processes(self) -> None:
        try:
            found = self._call("nvmlDeviceGetComputeRunningProcesses", self._handle)
        except CallFailed as failed:
            self._processes = None
            self._fail("processes", failed.error)
            return
        self._errors.pop("processes", None)
        self._processes = tuple(GpuProcess(pid=row.pid, used_bytes=row.usedGpuMemory) for row in found)

    # links

    def _read_links(self) -> None:
        """All links in one call: five figures each."""
        if "links" in self.unsupported:
            return
        try:
            count = self._count_links()
            found = self._fields([(row.field, link) for link in range(count) for row in LINK_FIELDS]) if count else ()
        except CallFailed as failed:
            self._links, self._link_errors = {}, {}
            self._fail("links", failed.error)
            return
        self._errors.pop("links", None)
        self._links, self._link_errors = {}, {}
        for link, fields in enumerate(_by_link(found)):
            self._take_link(str(link), fields)

    def _count_links(self) -> int:
        if self._link_count is None:
            (field,) = self._fields([(LINK_COUNT_FIELD, 0)])
            if field.nvmlReturn:
                raise CallFailed("links", error_name(field.nvmlReturn))
            self._link_count = int(value_of(field))
        return self._link_count

    def _take_link(self, link: str, fields: Sequence[Any]) -> None:
        values: Values = {}
        errors: dict[str, str] = {}
        for row, field in zip(LINK_FIELDS, fields, strict=True):
            error = error_name(field.nvmlReturn) if field.nvmlReturn else None
            if error is None:
                values[row.name] = value_of(field, row.convert)
            elif error not in NEVER_SUPPORTED:
                errors[row.name] = error
        self._links[link] = LinkReadings(**values)
        if errors:
            self._link_errors[link] = errors


def _by_link(fields: Sequence[Any]) -> Iterator[Sequence[Any]]:
    width = len(LINK_FIELDS)
    for at in range(0, len(fields), width):
        yield fields[at : at + width]
