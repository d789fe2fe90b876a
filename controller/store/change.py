"""How a decision line becomes a row: what it is about, which thing it belongs to, and whether that is over."""

from typing import Any

import msgspec

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
from vocab.states import TERMINAL_ACTIONS

KIND = {
    EventLine: "event",
    ConditionLine: "condition",
    IncidentLine: "incident",
    StateLine: "state",
    HoldLine: "hold",
    ActionLine: "action",
    NoteLine: "note",
    FinalLine: "final",
}

_HOLD_STANDS = frozenset({"placed"})
_KEPT_ACTIONS = frozenset({"start_replica"})  # where a replica lives is known from the order that started it

_lines = msgspec.json.Decoder(AnyLine)


class Change(msgspec.Struct, frozen=True):
    """A decision line and its place in the one order of all changes."""

    seq: int
    line: AnyLine


def subject_text(subject: Subject) -> str:
    """``gpu:UUID``, ``node:NAME``, ...; empty for the fleet."""
    for name in subject.__struct_fields__:
        value = getattr(subject, name)
        if value is not None:
            return f"{name}:{value}"
    return ""


def key_of(line: AnyLine) -> str:
    """What tells this line's thing apart from others of its kind."""
    if isinstance(line, EventLine):
        return line.event.id
    if isinstance(line, ConditionLine | IncidentLine | HoldLine | ActionLine):
        return line.id
    if isinstance(line, NoteLine):
        return " ".join([line.code, subject_text(line.subject), *filter(None, (line.rule, line.incident, line.pool))])
    return subject_text(line.subject)


def incident_of(line: AnyLine) -> str | None:
    """The incident that this line tells of, where the line itself says so."""
    if isinstance(line, IncidentLine):
        return line.id
    return line.incident if isinstance(line, HoldLine | ActionLine | NoteLine) else None


def finished(line: AnyLine) -> bool:
    """Whether the thing is over with this line, so that its history may be pruned once it is old."""
    if isinstance(line, ConditionLine):
        return line.state == "cleared"
    if isinstance(line, IncidentLine):
        return line.state == "closed"
    if isinstance(line, HoldLine):
        return line.op not in _HOLD_STANDS
    if isinstance(line, ActionLine):
        return line.state in TERMINAL_ACTIONS and line.of not in _KEPT_ACTIONS
    return isinstance(line, EventLine)


def encode(seq: int, line: AnyLine) -> dict[str, Any]:
    """The row of ``changes``."""
    return {
        "seq": seq,
        "at": line.at,
        "kind": KIND[type(line)],
        "key": key_of(line),
        "gpu": line.subject.gpu,
        "subject": subject_text(line.subject),
        "incident": incident_of(line),
        "line": msgspec.json.encode(line).decode(),
    }


def decode(text: str) -> AnyLine:
    """The line in a row."""
    line: AnyLine = _lines.decode(text)
    return line
