"""Xids and SXids: the driver's own words in the kernel log. The richest source, and the first to know.

Each record counts once (see Tape). A record is judged when it is read; only lines that continue one are
awaited, until the next record or 100 ms. The GPU comes from the last inventory, for one that has fallen
off the bus can no longer be asked; an address that nobody knows opens nothing on any GPU. What a program
wrote (facility not 0, or the driver's injection mark) is shown as injected.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from agent.kernel.parsed import Kind, Parsed
from agent.kernel.parser import Parser
from agent.probes.probe import Finding, Verdict
from agent.probes.scene import Scene
from agent.probes.tape import Copies, Gap, Tape
from agent.probes.xid import Ruling, rule_sxid, rule_xid
from vocab.events import Evidence, Flag, Source, rfc3339
from vocab.observations import AnyObservation, KernelRecord

AWAIT_S = 0.1  # the driver prints the lines of one message within a millisecond
LOST = "kernel_records_lost"
SWITCH_WINDOW_S = 2.0  # headline, severity and data of an SXid come within milliseconds
MOST_WAITING = 64
MOST_TEXT = 2000  # characters of a line that are kept; the longest real one is under 1000
KERNEL_FACILITIES = frozenset({None, 0})


class KernelProbe:
    """Reads kernel records through the parser. All that must survive it is on the tape."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._copies = Copies()
        self._parser = Parser()
        self._waiting: list[KernelRecord] = []
        self._due: float | None = None
        self._switch: dict[str, tuple[float, Finding]] = {}

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one record, or an error of reading one."""
        if not isinstance(observation, KernelRecord):
            return ()
        if observation.error is not None:
            self._tape.broken = self._tape.broken or observation.error == "EPIPE"
            return ()
        new, gap = self._tape.take(observation)
        verdicts: list[Verdict] = [_lost(observation, gap)] if gap else []
        if new and observation.line:
            self._waiting = [*self._waiting[-MOST_WAITING:], observation]
            verdicts += self._judge(self._parser.feed(observation.line), scene, now)
        if self._parser.holding:
            self._due = now + AWAIT_S
        else:
            self._settle()
        return verdicts

    def tick(self, scene: Scene, now: float) -> Sequence[Verdict]:
        """Stop waiting for lines that continue the last record."""
        return self.flush(scene, now) if self._due is not None and now >= self._due else ()

    def next_deadline(self) -> float | None:
        """When the wait for further lines is over."""
        return self._due

    def flush(self, scene: Scene, now: float) -> Sequence[Verdict]:
        """Judge what still waits for further lines."""
        verdicts = list(self._judge(self._parser.flush(), scene, now))
        self._settle()
        return verdicts

    def rewind(self) -> None:
        """Another boot: numbers and stamps begin anew."""
        self._tape.rewind()
        self._copies = Copies()

    def _settle(self) -> None:
        self._waiting, self._due = [], None
        self._tape.settle()

    def _judge(self, parsed: Iterable[Parsed], scene: Scene, now: float) -> Iterable[Finding]:
        for record in parsed:
            if record.kind is Kind.GPU_AT and record.pci and record.uuid:
                scene.learn(record.pci, record.uuid)
            ruling = self._rule(record, scene)
            if ruling is None:
                continue
            origin = self._origin(record)
            stamp_s = _stamp_s(origin, record)
            text = f"{record.pci} {ruling.code} {record.payload or record.text}"
            ordinal = self._copies.ordinal(origin.source, origin.at if stamp_s is None else stamp_s, text)
            if ordinal is not None:
                yield self._counted(_finding(record, ruling, origin, scene, ordinal), record, now)

    @staticmethod
    def _rule(record: Parsed, scene: Scene) -> Ruling | None:
        if record.kind in {Kind.XID, Kind.FALLEN}:
            return rule_xid(record, scene.driver)
        return rule_sxid(record) if record.kind is Kind.SXID else None

    def _origin(self, record: Parsed) -> KernelRecord:
        """The observation that the record's first line came in."""
        first = record.lines[0] if record.lines else None
        held = (waiting for waiting in self._waiting if first and first in (waiting.line or ""))
        return next(held, self._waiting[-1])

    def _counted(self, finding: Finding, record: Parsed, now: float) -> Finding:
        """Further lines of one fault count nothing: the words after an Xid 79, and an SXid's data."""
        if record.kind is Kind.FALLEN:
            return msgspec.structs.replace(finding, count=0)
        if record.kind is not Kind.SXID:
            return finding
        key = f"{finding.pci}/{finding.code}"
        before = self._switch.get(key)
        if record.form in {"text", "bare"}:
            self._switch = {k: kept for k, kept in self._switch.items() if now - kept[0] <= SWITCH_WINDOW_S}
            self._switch[key] = (now, finding)
            return finding
        if before is None or now - before[0] > SWITCH_WINDOW_S:
            return msgspec.structs.replace(finding, flags=(*finding.flags, Flag.PARTIAL))
        head = before[1]
        return msgspec.structs.replace(
            finding,
            count=0,
            device=head.device,
            severity=head.severity,
            recovery=head.recovery,
            fields=finding.fields | head.fields,
        )


def _stamp_s(origin: KernelRecord, record: Parsed) -> float | None:
    return origin.kernel_s if origin.kernel_s is not None else record.prefix.uptime_s


def _finding(record: Parsed, ruling: Ruling, origin: KernelRecord, scene: Scene, ordinal: int) -> Finding:
    kernel_s = _stamp_s(origin, record)
    at, flags = _when(origin, kernel_s, scene)
    switch = record.kind is Kind.SXID
    gpu, found_by = (None, ()) if switch else _whose(record, scene)
    line = "\n".join(record.lines)[:MOST_TEXT] or (origin.line or "")[:MOST_TEXT]
    stamp = None if math.isnan(at) else rfc3339(at)
    text = record.payload or record.text or ""
    return Finding(
        code=ruling.code,
        at=at,
        gpu=gpu,
        pci=record.pci,
        mig=record.mig,
        device=ruling.device,
        severity=ruling.severity,
        recovery=ruling.recovery,
        pid=record.pid,
        process=record.name,
        injected=_injected(record, origin),
        source=Source.KERNEL,
        seq=origin.seq,
        kernel_s=kernel_s,
        first=_first(origin, kernel_s, stamp, text, ordinal),
        flags=(*flags, *found_by, *ruling.flags),
        fields=ruling.fields,
        text=text[:MOST_TEXT],
        evidence=(Evidence(source=origin.source, at=stamp, line=line),),
    )


def _first(origin: KernelRecord, kernel_s: float | None, stamp: str | None, text: str, ordinal: int) -> tuple[Any, ...]:
    """The evidence that names the event: the sequence number, else the kernel's or the wall's stamp and the text."""
    if origin.seq is not None and origin.source == "kmsg":
        return (origin.seq,)
    return (stamp if kernel_s is None else f"{kernel_s:.3f}", text, ordinal)


def _when(origin: KernelRecord, kernel_s: float | None, scene: Scene) -> tuple[float, tuple[Flag, ...]]:
    """The time of reading for live records; for those of a backlog the kernel's own, as far as it is known."""
    if not origin.backlog:
        return origin.at, ()
    if kernel_s is None or scene.boot_at is None:
        return origin.at, (Flag.BACKLOG,)
    return min(scene.boot_at + kernel_s, origin.at), (Flag.BACKLOG, Flag.TIME_ESTIMATED)


def _whose(record: Parsed, scene: Scene) -> tuple[str | None, tuple[Flag, ...]]:
    """The GPU at the record's address, and how sure that is."""
    place = scene.place(record.pci)
    if place.gpu is not None:
        return place.gpu, (Flag.CACHED_UUID,) if place.cached else ()
    if len(scene.absent) == 1:  # nobody else can be meant: all others pass their presence check
        return next(iter(scene.absent)), (Flag.INFERRED,)
    return None, (Flag.LOOKUP_FAILED,)


def _injected(record: Parsed, origin: KernelRecord) -> bool:
    facility = record.prefix.facility
    written = origin.facility not in KERNEL_FACILITIES or facility not in {None, "kern"}
    return written or bool(record.fields.get("injected"))


def _lost(record: KernelRecord, gap: Gap) -> Finding:
    stamp = None if math.isnan(record.at) else rfc3339(record.at)
    known = gap.first is not None and gap.last is not None
    count = (gap.last or 0) - (gap.first or 0) + 1 if known else None
    text = f"{count if known else 'some'} kernel records were overwritten before they were read"
    return Finding(
        code=LOST,
        at=record.at,
        source=Source.KERNEL,
        first=(gap.first, gap.last) if known else (stamp, LOST, 0),
        fields={"from": gap.first, "to": gap.last, "lost": count},
        text=text,
        evidence=(Evidence(source=record.source, at=stamp, line=text),),
    )
