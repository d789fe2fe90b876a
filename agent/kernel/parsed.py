"""What a record of the kernel log says, as a frozen type. Keys that a record does not carry are absent in its JSON."""

from enum import StrEnum
from typing import Any

import msgspec

from vocab.events import Mig


class Kind(StrEnum):
    """What sort of record it is."""

    XID = "nvrm_xid"
    SXID = "sxid"
    GPU_AT = "nvrm_gpu_at"  # bus address -> UUID
    SERIAL = "nvrm_serial"
    FALLEN = "nvrm_fallen_off_bus"
    INIT_FAILED = "nvrm_init_failed"
    RATE_LIMIT = "nvrm_rate_limit"
    BANNER = "nvrm_banner"  # driver version
    API_MISMATCH = "nvrm_api_mismatch"  # a program with the library of another build
    TEXT = "nvrm_text"
    INFOROM = "inforom"  # of a board, as NVIDIA's tools say
    AER = "aer"
    BANDWIDTH = "pcie_bandwidth"
    PEERMEM = "peermem"
    MCE = "mce"
    FIRMWARE = "firmware_report"  # its first line, until the others tell what it is about
    OOM = "oom_kill"
    NIC = "nic"  # a network adapter's driver
    FABRIC = "fabric_manager"
    DISK = "disk"
    FILESYSTEM = "filesystem"
    CONTINUATION = "continuation"  # a line of a print whose head is not there


class Prefix(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a record was read, and the stamp and marks that it shows. ``uptime_s``: seconds since boot, monotonic.

    ``seq`` and ``priority`` (facility * 8 + level) are those of a raw /dev/kmsg record; they are not part of the JSON,
    nor is the host of the short syslog forms, nor ``times``: how often the logger says that the record came.
    """

    kind: str
    text: str | None = None
    tz: str | None = None
    uptime_s: float | None = None
    delta_s: float | None = None
    caller: str | None = None
    facility: str | None = None
    level: str | None = None
    iso: str | None = None
    host: str | None = None
    seq: int | None = None
    priority: int | None = None
    times: int | None = None


class Parsed(msgspec.Struct, frozen=True, kw_only=True):
    """One record. ``pci`` is ``dddd:bb:dd`` or None; hex words of ``fields`` are strings, counters are numbers.

    ``pid`` and ``name`` are those of the process that owned the channel or called the driver, None where unknown.
    ``implied_xid``: the Xid that a line without a number stands for. ``extra_lines``: further lines of this record.
    ``lines``: the record as it was read, for evidence; not part of the JSON.
    """

    prefix: Prefix
    kind: Kind
    pci: str | None = None
    xid: int | None = None
    sxid: int | None = None
    nvswitch: int | None = None
    form: str | None = None  # of an SXid: text, severity, data or bare
    pid: int | None = None
    name: str | None = None
    mig: Mig | None = None
    payload: str | None = None
    text: str | None = None
    fields: dict[str, Any] = {}
    implied_xid: int | None = None
    uuid: str | None = None
    serial: str | None = None
    applies_to: str | None = None
    driver: str | None = None
    open_module: bool | None = None
    reporter: str | None = None
    at_probe: bool | None = None
    pci_id: str | None = None
    extra_lines: int = 0
    lines: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The record as JSON types, with the keys of its kind and those that it carries."""
        always = _ALWAYS.get(self.kind, _PCI)
        document = {
            key: value
            for key, value in ((key, getattr(self, key)) for key in _KEYS)
            if key in always or not (value is None or value == 0 or value == {})
        }
        plain: dict[str, Any] = msgspec.to_builtins(document)
        unprinted = _UNPRINTED if self.prefix.kind == "syslog_iso" else _UNPRINTED | {"host"}
        plain["prefix"] = {name: value for name, value in plain["prefix"].items() if name not in unprinted}
        return plain


_UNPRINTED = frozenset({"seq", "priority", "times"})
_KEYS = tuple(field for field in Parsed.__struct_fields__ if field != "lines")
_PCI = frozenset({"prefix", "kind", "pci"})
_ALWAYS: dict[Kind, frozenset[str]] = {
    Kind.XID: _PCI | {"xid", "pid", "name", "payload", "fields"},
    Kind.SXID: _PCI | {"sxid", "nvswitch", "form", "fields"},
    Kind.BANNER: _PCI | {"open_module"},
}
