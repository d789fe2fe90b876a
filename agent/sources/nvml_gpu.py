"""Reads one GPU, from the one thread that owns it: what is due, what never works, what failed this time."""

from collections.abc import Iterable, Sequence
from typing import Any

from agent.sources.child import CallFailed
from agent.sources.nvml_call import Caller, address
from agent.sources.nvml_errors import LOST, NEVER_SUPPORTED
from agent.sources.nvml_fields import FieldBatch, FieldRow
from agent.sources.nvml_gpm import Gpm
from agent.sources.nvml_links import SUMS, LinkReader, Links
from agent.sources.nvml_mig import Instance, InstanceReader, instances
from agent.sources.nvml_quick import QUICK, QuickRead, Values
from agent.sources.nvml_table import FACTS, FAST_FIELDS, SLOW, SLOW_FIELDS, STATIC, STATIC_FIELDS, Read
from agent.sources.nvml_traffic import Traffic
from vocab.observations import GpuIdentity, GpuProcess, GpuSample
from vocab.readings import Readings

SLOW_S = 10.0
STATIC_S = 3600.0
PROCESS_LISTS = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses",
                 "nvmlDeviceGetGraphicsRunningProcesses")  # fmt: skip
NO_DATA = "NO_DATA"  # asked and answered without a value


class GpuReader:
    """One GPU through NVML. A sample holds what was read for it (a value, or an error by name) and the facts.

    What the board or driver will never support is learnt once and left out (``unsupported``), until the GPU was away
    or is partitioned otherwise. ``instances`` are those of MIG.
    """

    def __init__(self, identity: GpuIdentity, handle: Any, caller: Caller) -> None:
        self.identity = identity
        self.unsupported: set[str] = set()
        self.instances: tuple[Instance, ...] = ()
        self._handle = handle
        self._call = caller
        self._facts: Values = {}
        self._gpm, self._slices = Gpm(), InstanceReader()
        self._begin()

    def _begin(self) -> None:
        """As at the start: nothing is known, and everything is asked."""
        self.unsupported.clear()
        self._facts.clear()
        self._gpm.forget()
        self._links, self._traffic = LinkReader(), Traffic()
        self._fast: tuple[QuickRead | Gpm, ...] = (*map(QuickRead, QUICK), self._gpm)
        self._batches: dict[Sequence[FieldRow], FieldBatch] = {}
        self._slow_due = self._static_due = 0.0

    def meet(self, identity: GpuIdentity, handle: Any) -> None:
        """As the inventory knows it now: a GPU that was renumbered or came back has another handle."""
        if address(handle) != address(self._handle):
            self._handle = handle
            self._begin()
        self.identity = identity

    def hurry(self) -> None:
        """Read everything the next time: the driver has said that something happened."""
        self._slow_due = 0.0

    def sample(self, at: float, now: float) -> GpuSample:
        """The GPU at ``at`` (epoch); ``now`` (monotonic) decides what is due. Never raises for NVML's errors."""
        values: Values = {}
        errors: dict[str, str] = {}
        rest: dict[str, Any] = {}
        one = self.identity
        try:
            self._read_fast(values, errors, now)
            if now >= self._slow_due:
                self._slow_due = now + SLOW_S
                rest = self._read_slow(values, errors, now)
        except CallFailed as failed:
            self._begin()
            return GpuSample(at=at, gpu=one.uuid, index=one.index, pci=one.pci, error=failed.error, source="nvml")
        return GpuSample(
            at=at,
            gpu=one.uuid,
            index=one.index,
            pci=one.pci,
            readings=Readings(**(self._facts | values)),
            errors=errors,
            source="nvml",
            **rest,
        )

    def _read_fast(self, values: Values, errors: dict[str, str], now: float) -> None:
        good = self._read(self._fast, values, errors) + self._fields(FAST_FIELDS, values, errors)
        if not good:
            raise CallFailed("all reads", next(iter(errors.values()), "UNKNOWN"))
        if "sm_active_ratio" in self.unsupported:  # no GPM: rates from the driver's counters
            values |= self._traffic.rates(self._call, self._handle, now)

    def _read_slow(self, values: Values, errors: dict[str, str], now: float) -> dict[str, Any]:
        self._read(SLOW, values, errors)
        self._fields(SLOW_FIELDS, values, errors)
        if now >= self._static_due:
            failed: dict[str, str] = {}
            self._read(STATIC, values, failed)
            self._fields(STATIC_FIELDS, values, failed)
            self._static_due = now + (SLOW_S if failed else STATIC_S)
            errors |= failed
        links = self._read_links(values, errors)
        self._facts |= {name: value for name, value in values.items() if name in FACTS}
        for name in FACTS & errors.keys():
            self._facts.pop(name, None)
        self._find_instances()
        slices = self._slices.take(self._call, self._handle, self.instances) if self.instances else {}
        processes = self._read_processes(errors)
        return {"links": links.links, "link_errors": links.errors, "instances": slices, "processes": processes}

    # reads

    def _read(self, reads: Iterable[Read | QuickRead | Gpm], values: Values, errors: dict[str, str]) -> int:
        """Make these reads; returns how many calls came back well. Raises CallFailed if the GPU is lost."""
        good = 0
        for read in reads:
            if self.unsupported.issuperset(read.names):
                continue
            try:
                found = read.take(self._call, self._handle)
            except CallFailed as failed:
                for name in read.names:
                    self._fail(name, failed.error, errors)
                continue
            values |= found
            good += 1
            if len(found) < len(read.names):
                errors |= dict.fromkeys(set(read.names) - found.keys(), NO_DATA)
        return good

    def _fields(self, rows: Sequence[FieldRow], values: Values, errors: dict[str, str]) -> int:
        batch = self._batches.get(rows)
        if batch is None:
            wanted = [row for row in rows if row.name not in self.unsupported]
            batch = self._batches[rows] = FieldBatch(self._call.api, wanted)
        good, known = 0, len(self.unsupported)
        for row, error, value in batch.take(self._call, self._handle):
            if error is None:
                values[row.name] = value
                good = 1
            else:
                self._fail(row.name, error, errors)
        if len(self.unsupported) != known:
            del self._batches[rows]
        return good

    def _fail(self, name: str, error: str, errors: dict[str, str]) -> None:
        """A reading has no value now, and perhaps never. Raises CallFailed if that means the GPU is gone."""
        if error in LOST:
            raise CallFailed(name, error)
        if error in NEVER_SUPPORTED:
            self.unsupported.add(name)
        else:
            errors[name] = error

    def _read_links(self, values: Values, errors: dict[str, str]) -> Links:
        if "links" in self.unsupported:
            return Links()
        sums = [figure.name for figure in SUMS if figure.name in self.unsupported]
        try:
            found = self._links.take(self._call, self._handle, sums)
        except CallFailed as failed:
            self._fail("links", failed.error, errors)
            return Links()
        values |= found.sums
        return found

    def _read_processes(self, errors: dict[str, str]) -> tuple[GpuProcess, ...] | None:
        """Those of all lists, each once; None if the first of them cannot be had."""
        found: dict[int, GpuProcess] = {}
        for name in PROCESS_LISTS:
            if name in self.unsupported:
                continue
            try:
                rows = self._call(name, self._handle)
            except CallFailed as failed:
                if failed.error not in NEVER_SUPPORTED:
                    self._fail("processes", failed.error, errors)
                    return None
                self.unsupported.add(name)
                continue
            found |= {row.pid: GpuProcess(pid=row.pid, used_bytes=row.usedGpuMemory) for row in rows}
        return tuple(found.values()) if PROCESS_LISTS[0] not in self.unsupported else None

    def _find_instances(self) -> None:
        """Look how the GPU is partitioned; anything learnt under another partition is asked again."""
        found = instances(self._call, self._handle) if self._facts.get("mig_mode") else ()
        if {one.uuid for one in found} != {one.uuid for one in self.instances}:
            self.instances = found
            self._batches.clear()
            self.unsupported.clear()
