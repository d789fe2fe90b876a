"""What firmware reports through ACPI (APEI): errors that it was told first, PCIe errors of a GPU among them.

One report is several lines, each with its number in front; texts of Linux, drivers/acpi/apei/ghes.c and
drivers/firmware/efi/cper.c. Servers that handle errors in firmware print these in place of the PCIe core's own.
"""

import re
from typing import Any

from agent.kernel.parsed import Kind
from vocab.pci import pci_address

Parts = dict[str, Any]

_LINE = re.compile(r"(\{\d{1,9}\}\[Hardware Error\]:) ?(.{0,400})")
_HEAD = "Hardware error from APEI Generic Hardware Error Source"
_SEVERITY = re.compile(r"event severity: ([a-z]{4,11})")
_SECTION = re.compile(r"section_type: ([A-Za-z ]{1,60}?) ?(?:error|$)")
_DEVICE = re.compile(r"device_id: ([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")
_NODE = re.compile(r"DIMM location: (.{1,80})")
# The words of UEFI for how bad it is, in those of the PCIe core.
_SEVERITIES = {"corrected": "corrected", "recoverable": "nonfatal", "fatal": "fatal", "panic": "fatal"}


def report_head(text: str) -> Parts | None:
    """The first line of a report; what it is about comes in the next ones."""
    found = _LINE.match(text)
    return {"kind": Kind.FIRMWARE, "text": found[2]} if found and found[2].startswith(_HEAD) else None


def is_of_report(head: str, text: str) -> bool:
    """Whether a line goes on with the report that ``head`` begins: it has the same number in front."""
    first, further = _LINE.match(head), _LINE.match(text)
    return bool(first and further and first[1] == further[1])


def report(texts: list[str]) -> Parts | None:
    """All lines of one report: a PCIe error with its device, or an error of memory or processor."""
    said = "\n".join(found[2] for text in texts if (found := _LINE.match(text)))
    how = _SEVERITY.search(said)
    severity = _SEVERITIES.get(how[1]) if how else None
    section = _SECTION.search(said)
    if severity is None or section is None:
        return None
    if section[1].startswith("PCIe"):
        device = _DEVICE.search(said)
        fields: Parts = {"event": "bus_error", "severity": severity, "layer": None, "agent": None}
        return {
            "kind": Kind.AER,
            "reporter": "firmware",
            "pci": pci_address(device[1]) if device else None,
            "fields": fields,
        }
    dimm = _NODE.search(said)
    fields = {"section": section[1].strip(), "uncorrected": severity != "corrected"}
    return {"kind": Kind.MCE, "fields": fields | ({"dimm": dimm[1].strip()} if dimm else {})}
