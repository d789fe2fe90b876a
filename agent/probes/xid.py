"""What one parsed Xid or SXid means: the catalogue's row, unless the line itself says more.

Where the line decides: 144 to 150 by unit, sub-code and error status; 154 by the action that it names;
74 by its link's registers; 94 by the reset that the driver wants; 64 by a row that already waits; an SXid by its
word Fatal. A GPU that fell off the bus without a number is 79. What a repeat means is asked of ``repeats``.
"""

from typing import Any

import msgspec

from agent.kernel.parsed import Kind, Parsed
from agent.probes.repeats import Repeats
from agent.probes.ruling import About, Part, Ruling
from vocab.catalogue import nvlink4
from vocab.catalogue.codes import row
from vocab.catalogue.nvlink5 import decode
from vocab.catalogue.recovery import advice
from vocab.catalogue.sxids import renumbered, worst
from vocab.events import Flag, Recovery, Severity

BUS_LOST, LINK_ERROR, RECOVERY_ACTION, CONTAINED, UNREPAIRED = 79, 74, 154, 94, 64
WAITS = "Attempting to remap a row that is already pending"  # recorded before: harmless, the reset repairs it
FIRMWARE, HEARTBEAT = 119, "heartbeat timed out"
NVLINK5 = range(144, 151)
UNITS: dict[int, tuple[str, ...]] = {13: ("gpc", "tpc", "sm"), 31: ("engine", "client")}  # where in the GPU it was
HARDWARE = 2  # programs that met an error on one unit: from then on the unit is suspected, not the programs
_RENAMED = {"action_to": "to", "action_from": "from"}  # the parser's word -> the event's
_DROPPED = frozenset({"action_to_name", "action_from_name", "injected", "truncated"})
_STATED = (("reset_required", Recovery.RESET_GPU), ("drain_reset", Recovery.DRAIN_AND_RESET))


def rule_xid(record: Parsed, driver: str | None = None) -> Ruling | None:
    """The ruling on an Xid line, or on a line that stands for one."""
    number = record.xid if record.xid is not None else record.implied_xid
    if number is None:
        return None
    fields = _fields(record)
    link = fields.get("link")
    plain = Ruling(
        code=f"xid:{number}",
        fields=fields,
        flags=(Flag.PARTIAL,) if record.fields.get("truncated") else (),
        device=None if link is None else f"link:{link}",
    )
    if record.kind is Kind.RATE_LIMIT:  # a note that more of them came than are printed
        return msgspec.structs.replace(plain, flags=(Flag.INFERRED,), count=0)
    if number == BUS_LOST:
        return _bus_lost(plain, record)
    if number in NVLINK5:
        return _nvlink5(plain, number, fields, driver)
    if number == RECOVERY_ACTION:
        stated = advice(fields.get("to"))
        clears = plain.code if fields.get("to") == 0 else None
        return msgspec.structs.replace(plain, severity=stated.severity, recovery=stated.recovery, clears=clears)
    if number == CONTAINED:
        return _stated(plain)
    if number == UNREPAIRED and str(fields.get("reason")).startswith(WAITS):
        return msgspec.structs.replace(plain, severity=Severity.INFO, recovery=Recovery.NONE)
    return plain


def rule_heartbeat(record: Parsed) -> Ruling | None:
    """Firmware that gives no sign of life, in words without a number: 119 if it lasts, so until then a warning.

    Names the GPU by the driver's own number alone. Source: the open driver (kernel_gsp.c), R595 and newer.
    """
    said = record.fields.get("text")
    if not isinstance(said, str) or HEARTBEAT not in said.lower():
        return None
    return Ruling(
        code=f"xid:{FIRMWARE}",
        severity=Severity.WARNING,
        recovery=Recovery.INVESTIGATE,
        fields=_fields(record),
        flags=(Flag.INFERRED,),
    )


def _fields(record: Parsed) -> dict[str, Any]:
    """The parser's fields in the event's words; a link of -1 is no link in particular."""
    fields = {_RENAMED.get(k, k): v for k, v in record.fields.items() if k not in _DROPPED}
    if fields.get("link") == -1:
        fields["link"] = None
    return fields


def _bus_lost(plain: Ruling, record: Parsed) -> Ruling:
    """Two messages of one loss: the Xid, and words without a number before or after it, or alone."""
    if record.kind is Kind.XID:
        return msgspec.structs.replace(plain, part=Part.CLOSING, burst="bus")
    more = {"pci_id": record.pci_id} if record.pci_id else {}
    return msgspec.structs.replace(
        plain, part=Part.PIECE, burst="bus", flags=(Flag.INFERRED,), fields=plain.fields | more
    )


def _stated(plain: Ruling) -> Ruling:
    """The driver says what it wants, and it wins where it is harsher than the row."""
    wanted = [recovery for name, recovery in _STATED if plain.fields.get(name)]
    harshest = max([row(plain.code).recovery, *wanted], key=lambda recovery: recovery.rank)
    return msgspec.structs.replace(plain, recovery=harshest)


def _nvlink5(plain: Ruling, number: int, fields: dict[str, Any], driver: str | None) -> Ruling:
    verdict = decode(
        number,
        unit=fields.get("unit"),
        fatal=fields.get("fatal"),
        intrinfo=_word(fields.get("intrinfo")),
        error_status=_word(fields.get("error_status")),
        driver=_branch(driver),
    )
    more = {"subcode": verdict.subcode, "vendor": verdict.bucket, "then": verdict.then}
    known = {name: value for name, value in more.items() if value is not None}
    return msgspec.structs.replace(
        plain, severity=verdict.severity, recovery=verdict.recovery, fields=plain.fields | known
    )


def _branch(driver: str | None) -> int | None:
    """565 of 565.57.01."""
    branch = (driver or "").partition(".")[0]
    return int(branch) if branch.isdecimal() else None


def _word(text: Any) -> int | None:
    """A hex word of the line as a number."""
    try:
        return int(text, 16)
    except (TypeError, ValueError):
        return None


def with_repeats(ruling: Ruling, repeats: Repeats, place: str, pid: int | None, seen: float) -> Ruling:
    """The ruling in the light of what the same link or unit of this GPU has shown within a day."""
    kind, _, digits = ruling.code.partition(":")
    if kind != "xid":
        return ruling
    number = int(digits)
    if number == LINK_ERROR:
        return _link_error(ruling, repeats, place, seen)
    names = UNITS.get(number, ())
    unit = [ruling.fields.get(name) for name in names]
    if not names or all(part is None for part in unit):
        return ruling
    programs = repeats.programs(f"{place} {ruling.code} {unit}", seen, pid)
    if programs < HARDWARE:
        return ruling
    more = {"programs_on_unit": programs, "suspect": "hardware"}
    return msgspec.structs.replace(ruling, fields=ruling.fields | more)


def _link_error(ruling: Ruling, repeats: Repeats, place: str, seen: float) -> Ruling:
    """Xid 74, by the bits of its registers; some matter only from a certain time on one link on."""
    found = nvlink4.classes(ruling.fields.get("registers", ()))
    of_link = f"{place} {ruling.code} {ruling.fields.get('link')}"
    times = {each.reason: repeats.count(f"{of_link} {each.reason}", seen) for each in found if each.after > 1}
    verdict = nvlink4.judge(found, times)
    if verdict is None:
        return ruling
    more: dict[str, Any] = {"reasons": list(verdict.reasons)} | ({"times": times} if times else {})
    if verdict.secondary:
        more["secondary"] = True
    return msgspec.structs.replace(
        ruling, severity=verdict.severity, recovery=verdict.recovery, fields=ruling.fields | more
    )


def rule_sxid(record: Parsed, driver: str | None = None) -> Ruling | None:
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
    code = f"sxid:{renumbered(record.sxid, text, _branch(driver))}"
    return Ruling(
        code=code,
        severity=worst(text) if fatal is None else Severity.CRITICAL if fatal else Severity.WARNING,
        recovery=_sxid_recovery(code) if fatal else None,
        about=About.HOST,
        fields=fields,
        device=None if record.nvswitch is None else f"switch:{record.nvswitch}{port}",
        part=Part.WHOLE if record.form in {"text", "bare"} else Part.PIECE,
        burst=f"sxid {record.sxid}",  # as printed: only the headline has the text that tells a number that moved
        orphan=(Flag.PARTIAL,),
    )


def _sxid_recovery(code: str) -> Recovery:
    """A fatal one locks its port: the link is dead until it is reset, whatever the row says of milder ones."""
    known = row(code).recovery
    return known if known.rank > Recovery.RESET_GPU.rank else Recovery.RESET_GPU
