"""What the machine-check code, EDAC and the memory manager write of faults of processors and memory."""

import re
from typing import Any

from agent.kernel.parsed import Kind

Parts = dict[str, Any]

_HEAD = "mce: [Hardware Error]: "
_MCE = re.compile(r"CPU (\d{1,6}): Machine Check( Exception)?: ([0-9a-f]{1,16}) Bank (\d{1,4}): ([0-9a-f]{1,16})")
_AMD = re.compile(
    r"\[Hardware Error\]: CPU:(\d{1,6}) \([0-9a-f:]{1,16}\) MC(\d{1,4})_STATUS\[([^\]]{1,160})\]: 0x([0-9a-f]{1,16})"
)
_EDAC = re.compile(r"EDAC MC(\d{1,4}): (\d{1,9}) (CE|UE) (?:.{0,80}? )?on (\S{1,120})")
_PAGE = re.compile(r"Memory failure: (0x[0-9a-f]{1,16}): recovery action for .{1,80}?: (\w{1,20})")

_UNCORRECTED = 1 << 61  # MCi_STATUS.UC


def machine_check(text: str) -> Parts | None:
    """A fault of a processor or of memory; ``uncorrected`` as the record says, absent where it adds to another one."""
    if text.startswith(_HEAD):
        fields = _bank(text[len(_HEAD) :])
    elif found := _AMD.match(text):
        fields = {
            "cpu": int(found[1]),
            "bank": int(found[2]),
            "status": found[4],
            "uncorrected": "UE" in found[3].split("|"),
        }
    elif found := _EDAC.match(text):
        fields = {"controller": int(found[1]), "errors": int(found[2]), "dimm": found[4]}
        fields["uncorrected"] = found[3] == "UE"
    elif found := _PAGE.match(text):
        fields = {"page": found[1], "outcome": found[2], "uncorrected": True}
    else:
        return None
    return {"kind": Kind.MCE, "fields": fields}


def _bank(text: str) -> Parts:
    """One bank of one processor; ``uncorrected`` is bit 61 of its status."""
    if not (found := _MCE.match(text)):
        return {"text": text}
    return {
        "cpu": int(found[1]),
        "mcgstatus": found[3],
        "bank": int(found[4]),
        "status": found[5],
        "exception": found[2] is not None,
        "uncorrected": bool(int(found[5], 16) & _UNCORRECTED),
    }
