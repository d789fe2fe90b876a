"""Which changes are worth a notice, and what it says. Pure."""

from enum import StrEnum
from hashlib import blake2b
from typing import Any

import msgspec

from vocab.events import rfc3339
from vocab.lines import ActionLine, AnyLine, HoldLine, IncidentLine, NoteLine, Subject
from vocab.states import REPAIRS, ActionKind, ActionState


class What(StrEnum):
    """What has changed."""

    INCIDENT_OPENED = "incident_opened"
    INCIDENT_UPDATED = "incident_updated"
    INCIDENT_CLOSED = "incident_closed"
    HOLD_PLACED = "hold_placed"
    HOLD_LIFTED = "hold_lifted"
    WAITS_FOR_PERSON = "waits_for_person"  # an action that a person may approve, or must do
    NEEDS_PERSON = "needs_person"  # automation ends here
    QUARANTINED = "quarantined"


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """One change. ``key`` is the same for the same change, however often it is sent; ``line`` is the line itself.

    ``bundle``: of a quarantine, the evidence at ``/api/v1/bundles/ID``, which is written meanwhile.
    """

    key: str
    seq: int
    at: str
    what: What
    subject: str
    incident: str | None
    code: str | None
    severity: str | None
    summary: str
    bundle: str | None = None
    line: dict[str, Any]


_INCIDENTS = {"open": What.INCIDENT_OPENED, "updated": What.INCIDENT_UPDATED, "closed": What.INCIDENT_CLOSED}
_HOLDS = {"placed": What.HOLD_PLACED, "lifted": What.HOLD_LIFTED}


def notice_of(seq: int, line: AnyLine) -> Notice | None:
    """The notice of a stored line; None if it is not worth one."""
    what = _what(line)
    if what is None:
        return None
    raw = msgspec.json.encode(line)
    mark = blake2b(raw, digest_size=6).hexdigest()  # a restored database gives the numbers out again
    return Notice(
        key=f"{seq}-{mark}",
        seq=seq,
        at=rfc3339(line.at),
        what=what,
        subject=subject_name(line.subject),
        incident=line.id if isinstance(line, IncidentLine) else getattr(line, "incident", None),
        code=line.code if isinstance(line, IncidentLine) else None,
        severity=line.severity.value if isinstance(line, IncidentLine) else None,
        summary=_summary(line),
        bundle=bundle_of(line),
        line=msgspec.json.decode(raw),
    )


def _what(line: AnyLine) -> What | None:
    if isinstance(line, IncidentLine):
        return _INCIDENTS.get(line.state)
    if isinstance(line, HoldLine):
        return _HOLDS.get(line.op)
    if isinstance(line, NoteLine):
        return What.NEEDS_PERSON if line.code == "needs_person" else None
    if bundle_of(line) is not None:
        return What.QUARANTINED
    if isinstance(line, ActionLine) and line.of in REPAIRS and line.state is ActionState.WAITING:
        return What.WAITS_FOR_PERSON if line.budget is None else None
    return None


def _summary(line: AnyLine) -> str:
    about = subject_name(line.subject)
    match line:
        case IncidentLine():
            end = f": {line.closed_because}" if line.closed_because else ""
            return f"{line.code} ({line.severity.value}) on {about} {line.state}{end}"
        case HoldLine():
            return f"hold on {about} {line.op} by {line.owner}: {line.reason}"
        case ActionLine():
            return f"{line.of.value} of {about} {line.state.value}: {line.why}"
        case NoteLine():
            return f"{about}: {line.text}"
        case _:
            return about


def bundle_of(line: AnyLine) -> str | None:
    """The id of the bundle that is written for a line; None if none is."""
    if isinstance(line, ActionLine) and (line.of, line.state) == (ActionKind.QUARANTINE, ActionState.DONE):
        return f"b-{line.id.removeprefix('a-')}"
    return None


def subject_name(subject: Subject) -> str:
    """The name of what a line is about."""
    return next((value for name in subject.__struct_fields__ if (value := getattr(subject, name))), "fleet")
