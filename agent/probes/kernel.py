"""The kernel log: the driver's own words, and those of the machine around it. The richest source, the first to know.

Each record counts once (see tape and copies). A record is judged when it is read; only lines that continue one are
awaited, until the next record or 100 ms. The GPU comes from the last inventory, for one that has fallen off the bus
can no longer be asked; an address that nobody knows opens nothing on any GPU. What a program wrote (facility not 0,
or the driver's injection mark) is shown as injected.
"""

import math
from collections.abc import Iterable, Sequence

import msgspec

from agent.kernel.parsed import Kind, Parsed, Prefix
from agent.kernel.parser import Parser
from agent.kernel.prefix import split
from agent.probes.bursts import Bursts
from agent.probes.log import Log
from agent.probes.machine import RULES
from agent.probes.origin import by_program, finding, injected, is_dated, numbered, stamp_of, when
from agent.probes.probe import Clear, Finding, Verdict
from agent.probes.repeats import Repeats
from agent.probes.ruling import Ruling
from agent.probes.scene import Scene
from agent.probes.storm import Held, Storm, key_of
from agent.probes.tape import Gap, Tape
from agent.probes.xid import rule_heartbeat, rule_sxid, rule_xid, with_repeats
from vocab.events import Evidence, Source, rfc3339
from vocab.observations import AnyObservation, KernelRecord, SourceState

AWAIT_S = 0.1  # the driver prints the lines of one message within a millisecond
LOST = "kernel_records_lost"
MISMATCH = "driver_library_mismatch"  # the library itself may still say so when programs are quiet
MOST_WAITING = 64
MAIN = "kmsg"  # the source whose numbers are the kernel's own, and whose place is handed back to it
ENDED = "EOF"  # the reader has lost its log, until it reads again
ANEW = frozenset({"CURSOR_GONE", ENDED})  # it will begin at the start of the boot


class KernelProbe:
    """Reads kernel records through the parser. All that must survive it is on the tape and in the log."""

    def __init__(self, tape: Tape, log: Log | None = None) -> None:
        self._tape = tape
        self._log = log or Log()
        self._bursts = Bursts()
        self._parser = Parser()
        self.storm = Storm(self._log.held)
        self._waiting: list[KernelRecord] = []
        self._due: float | None = None

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one record, or an error of reading one."""
        if not isinstance(observation, KernelRecord):
            return ()
        if observation.error is not None:
            return self._failed(observation)
        new, gap = self._tape_of(observation.source).take(_seq(observation))
        verdicts: list[Verdict] = [_lost(observation, gap)] if gap else []
        if new and observation.line:
            if self._parser.holding and _by_program(observation) != _by_program(self._waiting[0]):
                verdicts += self.flush(scene, now)  # nobody goes on with what another has begun
            self._waiting = [*self._waiting[-MOST_WAITING:], observation]
            verdicts += self._measure(observation, scene)
            verdicts += self._judge(self._parser.feed(observation.line), scene, now)
        if self._parser.holding:
            self._due = now + AWAIT_S
        else:
            self._settle()
        return verdicts

    # -- lines that only repeat ---------------------------------------------------------------------------

    def repeats(self, record: KernelRecord, scene: Scene, now: float) -> bool:
        """Count a line that says again what was judged already; False: it is to be observed like any other."""
        if record.line is None or record.backlog or self._parser.holding:
            return False
        found = split(record.line)
        key = key_of(record, *found) if found else ""
        known = self.storm.knows(key, scene, now)
        if known is None or found is None or found[0].times or (is_dated(found[0]) and scene.boot_at is not None):
            return False
        number = _seq(record)
        if not self._tape_of(record.source).go_on(number):
            return False
        kept = numbered(record, found[0]) is not None
        ordinal = self._log.copies.ordinal(record.source, stamp_of(record, found[0]), known.said, numbered=kept)
        if ordinal is not None:
            self.storm.hold(key, known, record, now)
        return True

    def catch_up(self, held: Held, scene: Scene) -> Sequence[Finding]:
        """What the last of some lines that were only counted says beside that."""
        self._log.quiet.heard(held.finding, held.seen, held.record.at)
        return self._measure(held.record, scene)

    # -- other lines --------------------------------------------------------------------------------------

    def _failed(self, record: KernelRecord) -> Sequence[Verdict]:
        tape = self._tape_of(record.source)
        tape.broken = tape.broken or record.error == "EPIPE"
        if record.error in ANEW:
            self._log.copies.reopen(record.source)
        return ()

    def turned(self, record: KernelRecord) -> SourceState | None:
        """Whether the log has ended for its reader, or can be read again after that."""
        ended = record.error == ENDED
        down = self._log.down
        if ended == (record.source in down) or (record.error is not None and not ended):
            return None
        (down.add if ended else down.discard)(record.source)
        state = "down" if ended else "up"
        return SourceState(at=record.at, node=record.node, source="kernel", state=state, error=record.error)

    def tick(self, scene: Scene, now: float) -> Sequence[Verdict]:
        """Stop waiting for lines that continue the last record; end what the log no longer complains of."""
        ended = self.flush(scene, now) if self._due is not None and now >= self._due else ()
        over = self._log.quiet.over(now)
        return (*ended, *(clear for clear in over if clear.code != MISMATCH or not scene.mismatched))

    def next_deadline(self) -> float | None:
        """When the wait for further lines, or for silence, is over."""
        times = (self._due, self._log.quiet.next_deadline(), self.storm.due)
        return min((time for time in times if time is not None), default=None)

    def flush(self, scene: Scene, now: float) -> Sequence[Verdict]:
        """Judge what still waits for further lines."""
        verdicts = list(self._judge(self._parser.flush(), scene, now))
        self._settle()
        return verdicts

    def rewind(self) -> None:
        """Another boot: numbers and stamps begin anew."""
        self._tape.rewind()
        self._log.rewind()
        self.storm.rewind()

    def _tape_of(self, source: str) -> Tape:
        if source == MAIN:
            return self._tape
        return self._log.tapes.get(source) or self._log.tapes.setdefault(source, Tape())

    def _settle(self) -> None:
        self._waiting, self._due = [], None
        self._tape.settle()

    def _measure(self, record: KernelRecord, scene: Scene) -> Sequence[Finding]:
        """How far the kernel's stamps are from the wall clock: only a record that is read live tells."""
        if record.backlog:
            return ()
        found = self._log.skew.live(record.at, _raw_stamp_s(record), scene, record.source)
        return (found,) if found else ()

    def _judge(self, parsed: Iterable[Parsed], scene: Scene, now: float) -> Iterable[Verdict]:
        for record in parsed:
            origin = self._origin(record)
            if record.kind is Kind.GPU_AT and record.pci and record.uuid and not injected(origin, record):
                scene.learn(record.pci, record.uuid)
                self.storm.news()
            ruling = _rule(record, scene)
            if ruling is None:
                continue
            said = f"{record.pci} {ruling.code} {record.pid} {record.payload or record.text or record.fields}"
            kept = numbered(origin, record.prefix) is not None
            ordinal = self._log.copies.ordinal(origin.source, stamp_of(origin, record.prefix), said, numbered=kept)
            if ordinal is not None:
                found = self._found(record, ruling, origin, ordinal, scene, now)
                yield self._bursts.join(ruling, found, now - found.age_s)
                if ruling.clears is not None and not found.injected and not found.history:
                    yield Clear(code=ruling.clears, at=found.at, gpu=found.gpu, device=found.device)
                elif ruling.burst is None and not origin.backlog and record.lines == (origin.line,):
                    self._learn(origin, found, said, scene, now)

    def _found(
        self, record: Parsed, ruling: Ruling, origin: KernelRecord, ordinal: int, scene: Scene, now: float
    ) -> Finding:
        found = finding(record, ruling, origin, scene, when(origin, record, scene, self._log.skew), ordinal)
        repeats = Repeats() if found.injected else self._log.repeats
        judged = with_repeats(ruling, repeats, found.gpu or found.pci or "", found.pid, now - found.age_s)
        if judged is not ruling:
            found = msgspec.structs.replace(
                found, severity=judged.severity, recovery=judged.recovery, fields=judged.fields
            )
        self._log.quiet.heard(found, now, found.at)
        return found

    def _learn(self, origin: KernelRecord, found: Finding, said: str, scene: Scene, now: float) -> None:
        """A record of one line that says all: if it is only repeated it needs no second look."""
        cut = split(origin.line or "")
        if cut is not None and not self._parser.holding:
            self.storm.learn(key_of(origin, *cut), found, said, scene, now)

    def _origin(self, record: Parsed) -> KernelRecord:
        """The observation that the record's first line came in."""
        first = record.lines[0] if record.lines else None
        held = (waiting for waiting in self._waiting if first and first in (waiting.line or ""))
        return next(held, self._waiting[-1])


def _rule(record: Parsed, scene: Scene) -> Ruling | None:
    if record.kind in {Kind.XID, Kind.FALLEN, Kind.RATE_LIMIT}:
        return rule_xid(record, scene.driver)
    if record.kind is Kind.TEXT:
        return rule_heartbeat(record)
    if record.kind is Kind.SXID:
        return rule_sxid(record, scene.driver)
    rule = RULES.get(record.kind)
    return rule(record) if rule else None


def _by_program(record: KernelRecord) -> bool:
    found = split(record.line or "")
    return by_program(record, found[0] if found else Prefix(kind="none"))


def _seq(record: KernelRecord) -> int | None:
    """The record's number; a raw line of /dev/kmsg shows it itself."""
    if record.seq is not None or record.source != MAIN:
        return record.seq
    raw = _raw(record)
    return raw.seq if raw else None


def _raw_stamp_s(record: KernelRecord) -> float | None:
    """The kernel's stamp, where the reader or a raw line says it."""
    if record.kernel_s is not None:
        return record.kernel_s
    raw = _raw(record)
    return raw.uptime_s if raw else None


def _raw(record: KernelRecord) -> Prefix | None:
    """What stands before the text of a raw line of /dev/kmsg."""
    if record.line is None or not record.line[:1].isdigit():
        return None
    found = split(record.line)
    return found[0] if found and found[0].kind == "kmsg_raw" else None


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
