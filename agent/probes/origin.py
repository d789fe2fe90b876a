"""Where a record of the kernel log comes from: when it was written, whose it is, and who wrote it."""

import math
from datetime import UTC
from typing import Any, NamedTuple

from agent.kernel.parsed import Kind, Parsed, Prefix
from agent.kernel.stamps import Stamps
from agent.probes.copies import Stamp
from agent.probes.probe import Finding
from agent.probes.ruling import About, Ruling
from agent.probes.scene import Scene
from agent.probes.skew import Skew
from vocab.events import Evidence, Flag, Scope, Source, rfc3339
from vocab.observations import KernelRecord

MOST_TEXT = 2000  # characters of a line that are kept; the longest real one is under 1000
EARLIER_S = 60.0  # a stamp by that much before the boot is of an earlier one; loggers write boot lines in whole seconds
ZONES_S = 14 * 3600.0  # what a local stamp can be off where nobody says that it is old
KERNEL = 0  # the facility of what the kernel itself wrote


def numbered(origin: KernelRecord, prefix: Prefix) -> int | None:
    """The record's sequence number, as its reader or the line itself says."""
    return origin.seq if origin.seq is not None else prefix.seq


def uptime(origin: KernelRecord, prefix: Prefix) -> float | None:
    """The kernel's own stamp, in seconds since boot."""
    return origin.kernel_s if origin.kernel_s is not None else prefix.uptime_s


def stamp_of(origin: KernelRecord, prefix: Prefix) -> Stamp:
    """By what a copy of this record is known."""
    kernel_s = uptime(origin, prefix)
    if kernel_s is not None:
        return Stamp("kernel", kernel_s)
    wall = _wall(origin, prefix)
    if wall is not None:
        return Stamp("wall", wall)
    return Stamp("read", None if math.isnan(origin.at) else origin.at)


def is_dated(prefix: Prefix) -> bool:
    """Whether the line itself shows the wall clock."""
    return prefix.iso is not None or prefix.text is not None


def _wall(origin: KernelRecord, prefix: Prefix) -> float | None:
    """The wall clock's stamp that the line itself shows; where it names no zone, UTC."""
    if not is_dated(prefix):
        return None
    return Stamps(UTC, 0.0 if math.isnan(origin.at) else origin.at, None).at(prefix)


class When(NamedTuple):
    """The time of a record, how sure it is, how long before its reading that was, and if it was an earlier boot."""

    at: float
    flags: tuple[Flag, ...] = ()
    age_s: float = 0.0
    history: bool = False


def when(origin: KernelRecord, record: Parsed, scene: Scene, skew: Skew) -> When:
    """The time of reading for live records; for those of a backlog their own, as far as it is known."""
    wall = _wall(origin, record.prefix)
    history = wall is not None and scene.boot_at is not None and wall < scene.boot_at - _earlier_s(origin, record)
    if not origin.backlog and not history:
        return When(origin.at)
    kernel_s, at = uptime(origin, record.prefix), origin.at
    flags: tuple[Flag, ...] = (Flag.BACKLOG,)
    if wall is not None:
        at = min(wall, origin.at)
    elif kernel_s is not None and scene.boot_at is not None:
        at = min(skew.wall(kernel_s, scene.boot_at), origin.at)
        flags = (Flag.BACKLOG, Flag.TIME_ESTIMATED)
    return When(at, flags, 0.0 if math.isnan(origin.at) else origin.at - at, history)


def _earlier_s(origin: KernelRecord, record: Parsed) -> float:
    """By how much a stamp must be before the boot to be of an earlier one."""
    return EARLIER_S if origin.backlog or record.prefix.iso else EARLIER_S + ZONES_S


def injected(origin: KernelRecord, record: Parsed) -> bool:
    """Whether a program wrote it, or the driver says that a test did."""
    return by_program(origin, record.prefix) or bool(record.fields.get("injected"))


def by_program(origin: KernelRecord, prefix: Prefix) -> bool:
    """Whether a program wrote it into the kernel's log: its facility is not the kernel's."""
    facility = origin.facility
    if facility is None and prefix.priority is not None:
        facility = prefix.priority >> 3
    return facility not in {None, KERNEL} or prefix.facility not in {None, "kern"}


def whose(pci: str | None, about: About, scene: Scene) -> tuple[str | None, tuple[Flag, ...]]:
    """The GPU at the record's address, and how sure that is."""
    if about is About.HOST:
        return None, ()
    place = scene.place(pci)
    if place.gpu is not None:
        return place.gpu, (Flag.CACHED_UUID,) if place.cached else ()
    if about is About.DEVICE:
        return None, ()
    if pci is None and (only := scene.only) is not None:
        return only, (Flag.INFERRED,)
    if len(scene.absent) == 1:  # nobody else can be meant: all others pass their presence check
        return next(iter(scene.absent)), (Flag.INFERRED,)
    return None, (Flag.LOOKUP_FAILED,)


def finding(record: Parsed, ruling: Ruling, origin: KernelRecord, scene: Scene, at: When, ordinal: int) -> Finding:
    """The ruling with all that is known of where and when."""
    pci = ruling.pci or record.pci
    gpu, found_by = whose(pci, ruling.about, scene)
    scope = Scope.NODE if ruling.about is About.DEVICE and gpu is None else ruling.scope
    stamp = None if math.isnan(at.at) else rfc3339(at.at)
    text = record.payload or record.text or (record.fields.get("text", "") if record.kind is Kind.TEXT else "")
    line = "\n".join(record.lines)[:MOST_TEXT] or (origin.line or "")[:MOST_TEXT]
    return Finding(
        code=ruling.code,
        at=at.at,
        gpu=gpu,
        pci=pci,
        mig=scene.instance(gpu, record.mig),
        device=ruling.device,
        severity=ruling.severity,
        recovery=ruling.recovery,
        scope=scope,
        pid=record.pid,
        process=record.name,
        injected=injected(origin, record),
        source=Source.KERNEL,
        seq=numbered(origin, record.prefix),
        kernel_s=uptime(origin, record.prefix),
        first=_first(origin, record, stamp, text, ordinal),
        flags=(*at.flags, *found_by, *ruling.flags),
        fields=ruling.fields,
        text=text[:MOST_TEXT],
        evidence=(Evidence(source=origin.source, at=stamp, line=line),),
        count=ruling.count * (record.prefix.times or 1),
        age_s=at.age_s,
        history=at.history,
    )


def _first(origin: KernelRecord, record: Parsed, stamp: str | None, text: str, ordinal: int) -> tuple[Any, ...]:
    """The evidence that names the event: the sequence number, else the kernel's or the wall's stamp and the text."""
    number, kernel_s = numbered(origin, record.prefix), uptime(origin, record.prefix)
    if number is not None and origin.source == "kmsg":
        return (number,)
    if kernel_s is not None:
        return (f"{kernel_s:.3f}", text, ordinal)
    wall = _wall(origin, record.prefix)
    return (stamp if wall is None else f"wall {wall:.3f}", text, ordinal)
