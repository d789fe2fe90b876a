"""What one parsed Xid or SXid means: the catalogue's row, unless the line itself says more.

Where the line decides: 144 to 150 by unit, sub-code and error status; 154 by the action that it names;
74 by its link's registers; an SXid by its word Fatal. A GPU that fell off the bus without a number is 79.
"""

from typing import Any

import msgspec

from agent.kernel.parsed import Kind, Parsed
from vocab.catalogue.nvlink5 import decode
from vocab.catalogue.recovery import advice
from vocab.catalogue.sxids import renumbered
from vocab.events import Flag, Recovery, Severity

NVLINK5 = range(144, 151)
RECOVERY_ACTION = 154
_RENAMED = {"action_to": "to", "action_from": "from"}  # the parser's word -> the event's
_DROPPED = frozenset({"action_to_name", "action_from_name", "injected", "truncated"})


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """The code, and what differs from its row."""

    code: str
    severity: Severity | None = None
    recovery: Recovery | None = None
    device: str | None = None
    fields: dict[str, Any] = {}
    flags: tuple[Flag, ...] = ()


def rule_xid(record: Parsed, driver: str | None) -> Ruling | None:
    """The ruling on an Xid line, or on a line that stands for one."""
    number = record.xid if record.xid is not None else record.implied_xid
    if number is None:
        return None
    flags: tuple[Flag, ...] = (Flag.INFERRED,) if record.kind is Kind.FALLEN else ()
    if record.fields.get("truncated"):
        flags = (*flags, Flag.PARTIAL)
    fields = _fields(record)
    link = fields.get("link")
    plain = Ruling(code=f"xid:{number}", fields=fields, flags=flags, device=None if link is None else f"link:{link}")
    if number in NVLINK5:
        return _nvlink5(plain, number, fields, driver)
    if number == RECOVERY_ACTION:
        stated = advice(fields.get("to"))
        return msgspec.structs.replace(plain, severity=stated.severity, recovery=stated.recovery)
    return plain


def _fields(record: Parsed) -> dict[str, Any]:
    """The parser's fields in the event's words; a link of -1 is no link in particular."""
    fields = {_RENAMED.get(k, k): v for k, v in record.fields.items() if k not in _DROPPED}
    if fields.get("link") == -1:
        fields["link"] = None
    return fields


def _nvlink5(plain: Ruling, number: int, fields: dict[str, Any], driver: str | None) -> Ruling:
    branch = (driver or "").partition(".")[0]
    verdict = decode(
        number,
        unit=fields.get("unit"),
        fatal=fields.get("fatal"),
        intrinfo=_word(fields.get("intrinfo")),
        error_status=_word(fields.get("error_status")),
        driver=int(branch) if branch.isdigit() else None,
    )
    more = {"subcode": verdict.subcode, "vendor": verdict.bucket, "then": verdict.then}
    known = {name: value for name, value in more.items() if value is not None}
    return msgspec.structs.replace(
        plain, severity=verdict.severity, recovery=verdict.recovery, fields=plain.fields | known
    )


def _word(text: Any) -> int | None:
    """A hex word of the line as a number."""
    try:
        return int(text, 16)
    except (TypeError, ValueError):
        return None


def rule_sxid(record: Parsed) -> Ruling | None:
    """The ruling on a line of an NVSwitch; without its headline the catalogue's row speaks."""
    if record.sxid is None:
        return None
    text = record.fields.get("text")
    said, link = record.fields.get("severity"), record.fields.get("link")
    fatal = None if said is None else said == "fatal"
    fields = {k: v for k, v in record.fields.items() if k not in {"text", "severity"}} | {"fatal": fatal}
    if record.nvswitch is not None:
        fields["switch"] = record.nvswitch
    port = "" if link is None else f"/link:{link}"
    return Ruling(
        code=f"sxid:{renumbered(record.sxid, text)}",
        severity=None if fatal is None else Severity.CRITICAL if fatal else Severity.WARNING,
        fields=fields,
        device=None if record.nvswitch is None else f"switch:{record.nvswitch}{port}",
    )
