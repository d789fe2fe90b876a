"""Xids that others than the kernel log report: NVML's and DCGM's events, and checks that name one.

The kernel's line says more than a number, so it is awaited for 5 s; only then does the report become an event of its
own. If the line comes after all, it is the same fault. A check that repeats what the log has said is a second
witness of that event and changes nothing in its judgement, whatever the check thinks of its number.
"""

import math
import re
from collections.abc import Iterable, Sequence

import msgspec

from agent.probes.probe import Finding, Verdict
from agent.probes.scene import Scene
from vocab.events import Evidence, Flag, Mig, Recovery, Severity, Source, rfc3339
from vocab.observations import AnyObservation, Check, DriverEvent
from vocab.pci import pci_address

AWAIT_S = 5.0  # the line and the event leave the driver together; reading either may lag
SAME_S = 60.0  # as long as repeats fold
MOST = 512
SOURCES = {"nvml": Source.NVML, "dcgm": Source.DCGM, "exporter": Source.EXPORTER}
LATE_S = {"exporter": 90.0}  # it collects each 30 s, is asked each 15 s, and keeps the last Xid: others were quicker
_NAMED = re.compile(r"\bX(?:ID|id) (\d{1,6})\b")
_XID_ERROR = "XID"  # in DCGM's name of the error
_NO_INSTANCE = 0xFFFFFFFF
HIGHEST = 0xFFFF  # a number over it is a blank of DCGM's or a failed read; zero is no Xid at all


class Report(msgspec.Struct, frozen=True):
    """One report of an Xid that waits for the kernel's line."""

    finding: Finding
    due: float


class PushedProbe(msgspec.Struct):
    """``heard``: when the log last told of a code on a GPU. ``raised``: reports that became events of their own."""

    waiting: list[Report] = []
    heard_at: dict[str, float] = {}
    raised: dict[str, float] = {}

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take a driver's event or the outcome of a check."""
        match observation:
            case DriverEvent(type="xid", data=int(number)) if 0 < number <= HIGHEST:
                late_s = LATE_S.get(observation.source, 0.0)
                self._report(_reported(observation, number, scene), now, late_s)
            case Check(result="problem"):
                named = named_xid(observation)
                if named is not None:
                    return self._witness(_checked(observation, named, scene), now)
        return ()

    def _report(self, found: Finding, now: float, late_s: float) -> None:
        key = _key(found)
        if now - self.heard_at.get(key, -math.inf) <= AWAIT_S + late_s:
            return  # the line was quicker
        if late_s and now - self.raised.get(key, -math.inf) <= AWAIT_S + late_s:
            return  # so was the driver's own event
        others = [report for report in self.waiting if _key(report.finding) == key]
        if any(report.finding.source is not found.source for report in others):
            return  # NVML and DCGM tell of one Xid
        self.waiting = [*self.waiting, Report(found, now + AWAIT_S)][-MOST:]

    def _witness(self, found: Finding, now: float) -> Sequence[Verdict]:
        """A check's word. If the log has told of the Xid in this boot, it is about that one."""
        if _key(found) in self.heard_at:
            return (_joining(found),)
        self.waiting = [*self.waiting, Report(found, now + AWAIT_S)][-MOST:]
        return ()

    def heard(self, found: Finding, now: float) -> Finding:
        """The log tells of an Xid: reports of it are answered; one that became an event already was the same fault.

        An injected one answers them too: the driver reports what a test raised like any other.
        """
        if found.source is not Source.KERNEL or not found.code.startswith("xid:") or found.history:
            return found
        key = _key(found)
        _note(self.heard_at, key, now)
        self.waiting = [
            report for report in self.waiting if _key(report.finding) != key or report.finding.source is Source.CHECK
        ]
        raised = self.raised.pop(key, None)
        if raised is not None and now - raised <= SAME_S:
            return msgspec.structs.replace(found, count=0, joins=True)
        return found

    def tick(self, scene: Scene, now: float) -> Sequence[Verdict]:
        """What the log did not tell of in time."""
        due = [report for report in self.waiting if report.due <= now]
        self.waiting = [report for report in self.waiting if report.due > now]
        return list(self._raise(due, now))

    def flush(self, now: float) -> Sequence[Verdict]:
        """The end of the input: nothing more will be told."""
        due, self.waiting = self.waiting, []
        return list(self._raise(due, now))

    def _raise(self, due: Iterable[Report], now: float) -> Iterable[Finding]:
        for report in due:
            key = _key(report.finding)
            if report.finding.source is Source.CHECK and key in self.heard_at:
                yield _joining(report.finding)
                continue
            _note(self.raised, key, now)
            yield report.finding

    def next_deadline(self) -> float | None:
        """When the first wait is over."""
        return min((report.due for report in self.waiting), default=None)

    def rewind(self) -> None:
        """Another boot."""
        self.heard_at.clear()
        self.raised.clear()


def _key(found: Finding) -> str:
    return f"{found.gpu or found.pci or ''} {found.code}"


def _note(times: dict[str, float], key: str, now: float) -> None:
    times.pop(key, None)
    times[key] = now
    if len(times) > MOST:
        del times[next(iter(times))]


def _joining(found: Finding) -> Finding:
    """A second witness: the kernel's wording is more specific, so its judgement stands."""
    fields = found.fields | {"decided_by": "kernel"}
    return msgspec.structs.replace(
        found, severity=Severity.INFO, recovery=Recovery.NONE, count=0, joins=True, fields=fields
    )


def _reported(event: DriverEvent, number: int, scene: Scene) -> Finding:
    gpu = scene.named(gpu=event.gpu, pci=event.pci, index=event.index)
    flags: tuple[Flag, ...] = ()
    if gpu is None and len(scene.absent) == 1:
        gpu, flags = next(iter(scene.absent)), (Flag.INFERRED,)
    elif gpu is None:
        flags = (Flag.LOOKUP_FAILED,)
    stamp = rfc3339(event.at)
    text = f"{event.source} reports Xid {number}"
    return Finding(
        code=f"xid:{number}",
        at=event.at,
        gpu=gpu,
        pci=pci_address(event.pci) if event.pci else None,
        mig=scene.instance(gpu, _instance(event.mig)),
        source=SOURCES.get(event.source, Source.NVML),
        first=(event.source, stamp, number),
        flags=flags,
        fields={"error": event.error},
        injected=event.drill,
        drill=event.drill,
        text=text,
        evidence=(Evidence(source=event.source, at=stamp, line=text),),
    )


def _instance(mig: Mig | None) -> Mig | None:
    """The MIG instance, unless the driver's *none* stands there."""
    return None if mig is None or _NO_INSTANCE in {mig.gi, mig.ci} else mig


def _checked(check: Check, number: int, scene: Scene) -> Finding:
    stamp = rfc3339(check.at)
    text = check.text or f"{check.check} reports Xid {number}"
    return Finding(
        code=f"xid:{number}",
        at=check.at,
        gpu=check.gpu,
        source=Source.CHECK,
        first=(check.check, stamp, number),
        flags=() if check.gpu else (Flag.LOOKUP_FAILED,),
        fields={"check": check.check, "check_code": check.code, "check_fatal": check.fatal},
        injected=check.drill,
        drill=check.drill,
        text=text,
        evidence=(Evidence(source="check", at=stamp, line=text),),
    )


def named_xid(check: Check) -> int | None:
    """The Xid that a check names, in its text or as its code."""
    if check.code and check.code.startswith("xid:") and check.code[4:].isdecimal():
        number = int(check.code[4:])
    else:
        found = _NAMED.search(check.text or "")
        number = int(found[1]) if found and (check.code is None or _XID_ERROR in check.code.upper()) else 0
    return number if 0 < number <= HIGHEST else None
