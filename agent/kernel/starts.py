"""GPUs that did not start: what the driver says of its own failure, and the kernel of a probe that failed."""

import re
from typing import Any

from agent.kernel.parsed import Kind
from vocab.pci import pci_address

Parts = dict[str, Any]

REGION = "This PCI I/O region assigned to your NVIDIA device is invalid"

_ADAPTER = re.compile(r"RmInitAdapter failed! \((0x[0-9a-f]{1,8}):(0x[0-9a-f]{1,8}):(\d{1,8})\)")
_MINOR = re.compile(
    r"rm_init_adapter(?: failed, device minor number | failed for device bearing minor number |\()(\d{1,6})"
)
_BAR = re.compile(r"\b(BAR\d{1,2}) is \d{1,9}M @ 0x[0-9a-f]{1,16} \(PCI:([0-9a-fA-F:.]{7,20})\)")
_PROBE = re.compile(  # Linux 6.11 turned the words around
    r"nvidia(?:: probe of ([0-9a-f:.]{7,20})| ([0-9a-f:.]{7,20}): probe with driver nvidia) "
    r"failed with error (-\d{1,5})"
)


def start_failed(said: str, pci: str | None = None) -> Parts | None:
    """A GPU that could not be started, in two lines. Old drivers do not say which."""
    if failed := _ADAPTER.match(said):
        fields = {"stage": failed[1], "status": failed[2], "line": int(failed[3])}
        return {"kind": Kind.INIT_FAILED, "pci": pci, "fields": fields}
    if failed := _MINOR.match(said):
        return {"kind": Kind.INIT_FAILED, "pci": pci, "fields": {"minor": int(failed[1])}}
    return None


def region_missing(text: str) -> Parts | None:
    """A GPU whose memory the machine's firmware has not mapped: told in two lines, the second with the address."""
    found = _BAR.search(text[:400]) if text.startswith(REGION) else None
    if not found:
        return None
    return {"kind": Kind.INIT_FAILED, "pci": pci_address(found[2]), "fields": {"reason": f"{found[1]} is not mapped"}}


def probe_failed(text: str) -> Parts | None:
    """The kernel's last word on a GPU that its driver could not take; what was wrong stands in lines before it."""
    found = _PROBE.match(text)
    if not found:
        return None
    return {"kind": Kind.INIT_FAILED, "pci": pci_address(found[1] or found[2]), "fields": {"error": int(found[3])}}
