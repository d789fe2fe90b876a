"""How a line is told: as JSON for programs, as one line of text for people."""

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from vocab.events import Severity
from vocab.lines import (
    ActionLine,
    AnyLine,
    ConditionLine,
    EventLine,
    FinalLine,
    HoldLine,
    IncidentLine,
    NoteLine,
    StateLine,
    Subject,
)

# fields that a line has only if there is something to say; an action always says which incident it is for, or null
OPTIONAL = frozenset(
    {"device", "suspects", "closed_because", "incident", "target", "disrupts", "covered_by", "deployment", "rule"}
    | {"budget", "right", "pool", "cleared_because", "until"}
)
OPTIONAL_OF: dict[type, frozenset[str]] = {ActionLine: OPTIONAL - {"incident", "budget"}}
EARLY = 10**8  # smaller times are counted from the recording's own zero, not from 1970


def as_json(line: AnyLine) -> bytes:
    """One JSON object; optional fields only where they say something; the fleet's counts stand beside its state."""
    form: dict[str, Any] = msgspec.to_builtins(line)
    counts = form.pop("counts", {})
    optional = OPTIONAL_OF.get(type(line), OPTIONAL)
    kept = {key: value for key, value in form.items() if key not in optional or (value is not None and value != ())}
    return msgspec.json.encode(kept | counts)


def renamed(line: AnyLine, names: dict[str, str]) -> AnyLine:
    """The line with the recording's names of replicas that the play calls otherwise."""
    if isinstance(line, EventLine) and (known := names.get(line.event.fields.get("replica") or "")) is not None:
        line = replace(line, event=replace(line.event, fields=line.event.fields | {"replica": known}))
    if isinstance(line, ActionLine) and line.disrupts:
        line = replace(line, disrupts=tuple(_renamed(subject, names) for subject in line.disrupts))
    return replace(line, subject=_renamed(line.subject, names))


def _renamed(subject: Subject, names: dict[str, str]) -> Subject:
    known = names.get(subject.replica or "")
    return subject if known is None else Subject(replica=known)


def as_text(line: AnyLine) -> str:
    """One line for people: when, what, about whom, and why."""
    if isinstance(line, FinalLine):
        return f"{'':>10}  final      {_name(line.subject)}: {_final(line)}"
    return f"{_when(line.at):>10}  {_KIND[type(line)]:<10} {_name(line.subject)}: {_words(line)}"


def _when(at: float) -> str:
    if abs(at) < EARLY:
        return f"{at:.1f}"
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _name(subject: Subject) -> str:
    names = [getattr(subject, field) for field in subject.__struct_fields__]
    return next((name for name in names if name), "fleet")


_KIND: dict[type, str] = {
    EventLine: "event",
    ConditionLine: "condition",
    IncidentLine: "incident",
    StateLine: "state",
    HoldLine: "hold",
    ActionLine: "action",
    NoteLine: "note",
}


def _words(line: AnyLine) -> str:
    if isinstance(line, EventLine):
        event = line.event
        marks = [mark for mark, there in (("injected", event.injected), ("drill", event.drill)) if there]
        times = f" x{event.count}" if event.count > 1 else ""
        return f"{_bad(event.severity)} {event.code}{times}, {event.recovery} {' '.join(marks)}".rstrip() + _text(
            event.text
        )
    if isinstance(line, ConditionLine):
        return f"{line.code} {line.state}, clears on {line.clears_on}"
    if isinstance(line, IncidentLine):
        because = f": {line.closed_because}" if line.closed_because else f", {len(line.events)} events"
        return f"{line.id} {line.state} for {line.code}{because}"
    if isinstance(line, StateLine):
        return f"{line.from_ or 'new'} -> {line.to} ({line.why})"
    if isinstance(line, HoldLine):
        return f"{line.op} by {line.owner}: {line.reason}"
    if isinstance(line, ActionLine):
        where = f" on {', '.join(line.target.gpus)}" if line.target else ""
        limit = f" [{line.budget.used:g} of {line.budget.limit:g} {line.budget.of}]" if line.budget else ""
        return f"{line.of} {line.state}{where}: {line.why}{limit}"
    assert isinstance(line, NoteLine)
    return f"{line.code}: {line.text}"


def _bad(severity: Severity) -> str:
    return severity.value.upper() if severity.rank >= Severity.ERROR.rank else severity.value


def _text(text: str) -> str:
    return f": {text}" if text else ""


def _final(line: FinalLine) -> str:
    if line.counts:
        return ", ".join(f"{name} {count}" for name, count in line.counts.items())
    parts = [line.state]
    for name, ids in (("held", line.holds), ("conditions", line.conditions), ("incidents", line.incidents)):
        parts += [f"{name} {', '.join(ids)}"] if ids else []
    return "; ".join(parts)
