"""Events: judged facts about hardware, with evidence. The forms are those of docs/api.md.

An event's ``id`` comes from its evidence, so a log that is read twice names the same event twice.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec


class Severity(StrEnum):
    """How bad, in order."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"

    rank: int  # 0 for info up to 3 for critical


class Recovery(StrEnum):
    """What is advised, in order of harshness."""

    NONE = "none"
    INVESTIGATE = "investigate"
    RESTART_APP = "restart_app"
    DRAIN_AND_RESET = "drain_and_reset"
    RESET_GPU = "reset_gpu"
    REBOOT_NODE = "reboot_node"
    POWER_CYCLE = "power_cycle"
    CONTACT_SUPPORT = "contact_support"

    rank: int  # 0 for none up to 7 for contact_support: the harsher wins


for _rank, _severity in enumerate(Severity):  # plain attributes: they are asked for at each event, many times
    _severity.rank = _rank
for _rank, _recovery in enumerate(Recovery):
    _recovery.rank = _rank


class Scope(StrEnum):
    """What a fault takes down."""

    PROCESS = "process"
    MIG = "mig"
    GPU = "gpu"
    LINK = "link"
    SWITCH = "switch"
    REPLICA = "replica"
    NODE = "node"
    FABRIC = "fabric"


class Source(StrEnum):
    """Who saw it."""

    KERNEL = "kernel"
    NVML = "nvml"
    DCGM = "dcgm"
    EXPORTER = "exporter"
    HOST = "host"
    ENGINE = "engine"
    CHECK = "check"
    CORRAL = "corral"


class Flag(StrEnum):
    """What a reader should know about how sure this event is."""

    BACKLOG = "backlog"
    CACHED_UUID = "cached_uuid"
    INFERRED = "inferred"
    LOOKUP_FAILED = "lookup_failed"
    PARTIAL = "partial"
    STORM = "storm"
    TIME_ESTIMATED = "time_estimated"


class Mig(msgspec.Struct, frozen=True):
    """A MIG instance of a GPU: GPU instance and compute instance id."""

    gi: int
    ci: int | None = None


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """One raw thing that was seen: a kernel line, or the readings that a verdict rests on."""

    source: str
    at: str | None = None
    line: str | None = None
    readings: dict[str, Any] | None = None


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A judged fact. Only count, last_at and judgement grow, by ``rev``; times are RFC 3339 or None."""

    id: str
    rev: int = 1
    at: str | None
    node: str
    boot_id: str | None = None
    gpu: str | None = None
    mig: Mig | None = None
    pci: str | None = None
    device: str | None = None
    code: str
    severity: Severity
    recovery: Recovery
    scope: Scope
    pid: int | None = None
    process: str | None = None
    injected: bool = False
    drill: bool = False
    source: Source
    seq: int | None = None
    kernel_s: float | None = None
    count: int = 1
    first_at: str | None = None
    last_at: str | None = None
    cause: str | None = None
    flags: tuple[Flag, ...] = ()
    fields: dict[str, Any] = {}
    text: str = ""
    evidence: tuple[Evidence, ...] = ()


class Cleared(msgspec.Struct, frozen=True, kw_only=True):
    """The signal behind an event's condition has returned to good, or a reset or reboot has ended it."""

    at: str
    node: str
    boot_id: str | None
    gpu: str | None
    device: str | None = None
    code: str
    by: str  # signal, reset or reboot
    event: str | None = None  # id of the event that opened what ends here
    name: str | None = None  # the replica or source that it is about, where it is not a GPU


MAX_EVIDENCE = 20
FIRST_S, LAST_S = -62135596800.0, 253402300799.0  # the years 1 and 9999: the calendar has no others
HISTORY = "history"  # a field that is set on events of an earlier boot: they are shown and open nothing
UNKNOWN_SLOT = "unknown slot"  # among the missing GPUs of gpu_count_mismatch: one that nobody can name


def rfc3339(at: float) -> str:
    """``at`` (seconds since the epoch) as RFC 3339 UTC with microseconds and ``Z``.

    Beyond the calendar it is the calendar's end: stamps come from log lines, where any number can stand.
    """
    return (
        datetime.fromtimestamp(min(max(at, FIRST_S), LAST_S), UTC)
        .isoformat(timespec="microseconds")
        .removesuffix("+00:00")
        + "Z"
    )


def epoch_s(stamp: str) -> float:
    """Seconds since the epoch of an RFC 3339 stamp; raises ValueError if it is none."""
    return datetime.fromisoformat(stamp).timestamp()


def event_id(boot_id: str | None, subject: str | None, code: str, discriminator: str, first: Iterable[Any]) -> str:
    """The first 20 hex digits of blake2b over what makes an event itself.

    ``subject`` is a GPU UUID, else a PCI address, else the node's name. ``first`` is the first evidence:
    (kernel sequence number,) or (stamp, text, ordinal), or for counters (epoch, counter, value).
    """
    from hashlib import blake2b  # brings OpenSSL with it, which the processes that only read a driver do not need

    parts = (boot_id or "", subject or "", code, discriminator, *first)
    return blake2b("\x1f".join(str(part) for part in parts).encode(), digest_size=10).hexdigest()
