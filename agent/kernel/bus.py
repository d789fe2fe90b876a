"""What the PCIe core and the peer-memory modules write."""

import re
from typing import Any

from agent.kernel.parsed import Kind
from vocab.pci import pci_address

Parts = dict[str, Any]

_DEVICE = re.compile(r"([a-z0-9_-]{2,24}) ((?:[0-9a-f]{4,8}:)[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): ?")
_RECEIVED = re.compile(
    r"AER: (Multiple )?(Corrected|Correctable|Uncorrected|Uncorrectable)(?: \((Fatal|Non-Fatal)\))? error"
    r"(?: message)? received(?: from|:) (?:id=)?([0-9a-f:.]{4,16})"
)
_BUS_ERROR = re.compile(
    r"(?:AER: )?PCIe Bus Error: severity=(Corrected|Uncorrected|Correctable|Uncorrectable)(?: \((Fatal|Non-Fatal)\))?, "
    r"type=([A-Za-z ]{1,40})(?:, \(([A-Za-z ]{1,30}?)(?: ID)?\))?"
)
_BIT = re.compile(r" {0,6}\[ ?(\d{1,2})\] ([A-Za-z0-9_]{1,32})(?: +(\(First\)))?")
_STATUS = re.compile(r" {0,6}device \[([0-9a-f:]{9})\] error status/mask=([0-9a-f]{8})/([0-9a-f]{8})")
_BANDWIDTH = re.compile(
    r"(\d{1,6}\.\d{1,6}) Gb/s available PCIe bandwidth, limited by (\d{1,4}(?:\.\d{1,4})?) GT/s PCIe x(\d{1,2}) link "
    r"at ([0-9a-f:.]{7,16})(?: \(capable of (\d{1,6}\.\d{1,6}) Gb/s "
    r"with (\d{1,4}(?:\.\d{1,4})?) GT/s PCIe x(\d{1,2}) link\))?"
)
_CONTAINED = re.compile(
    r"DPC: containment event, status:0x[0-9a-f]{1,4},?(?: (ERR_\w{1,12}) received from ([0-9a-f:.]{7,16}))?"
)
_SLOT = re.compile(r"pciehp: Slot\([^)]{1,16}\): (?:Link Down|Card not present)$")
_NO_POWER = re.compile(r"(?:can't|Unable to) change power state from \S{1,12} to D0\b.{0,24}inaccessible")
_PEERMEM = re.compile(r"(?:nvidia-peermem|nv_mem) ([A-Za-z_][A-Za-z0-9_]{0,60}):(\d{1,6}) (.{1,400})")


def device(text: str) -> Parts | None:
    """A line that a driver wrote about a PCI device: error reporting, or a link narrower than the device could use."""
    head = _DEVICE.match(text)
    if not head:
        return None
    rest = text[head.end() :]
    pci = pci_address(head[2])
    if found := _BANDWIDTH.match(rest):
        return {"kind": Kind.BANDWIDTH, "driver": head[1], "pci": pci, "fields": _bandwidth(found)}
    fields = _aer(rest, head[2]) or _gone(rest, head[1])
    return fields and {"kind": Kind.AER, "reporter": head[1], "pci": pci, "fields": fields}


def _bandwidth(found: re.Match[str]) -> Parts:
    fields: Parts = {
        "gbps": float(found[1]),
        "gts": float(found[2]),
        "width": int(found[3]),
        "limited_at": found[4],
    }
    if found[5]:
        fields |= {"capable_gbps": float(found[5]), "capable_gts": float(found[6]), "capable_width": int(found[7])}
    return fields


def _severity(word: str, fatal: str | None) -> str:
    if word.startswith("Correct"):
        return "corrected"
    return "fatal" if fatal == "Fatal" else "nonfatal"


def _aer(rest: str, address: str) -> Parts | None:
    if found := _RECEIVED.match(rest):
        source = _requester(found[4], address)
        severity = _severity(found[2], found[3])
        return {"event": "received", "multiple": bool(found[1]), "severity": severity, "source": source}
    if found := _BUS_ERROR.match(rest):
        return {
            "event": "bus_error",
            "severity": _severity(found[1], found[2]),
            "layer": found[3],
            "agent": found[4],
        }
    if found := _BIT.match(rest):
        return {"event": "bit", "bit": int(found[1]), "bit_name": found[2], "first": found[3] is not None}
    if found := _STATUS.match(rest):
        return {"event": "status", "device": found[1], "status": found[2], "mask": found[3]}
    if found := _CONTAINED.match(rest):
        severity = "nonfatal" if found[1] == "ERR_NONFATAL" else "fatal"
        return {"event": "contained", "severity": severity, "source": found[2]}
    if not rest.startswith("AER: "):
        return None
    return _aer_outcome(rest[5:])


def _gone(rest: str, reporter: str) -> Parts | None:
    """A link that went down under a slot, or a GPU whose configuration no longer answers."""
    if _SLOT.match(rest):
        return {"event": "link_down"}
    return {"event": "inaccessible"} if reporter == "nvidia" and _NO_POWER.match(rest) else None


def _aer_outcome(text: str) -> Parts:
    for start, event in _OUTCOMES:
        if text.startswith(start):
            return {"event": event}
    return {"event": "other", "text": text[:400]}


_OUTCOMES = (
    ("can't recover", "cannot_recover"),
    ("device recovery failed", "recovery_failed"),
    ("device recovery successful", "recovered"),
    ("Root Port link has been reset", "link_reset"),
    ("Downstream Port link has been reset", "link_reset"),
)


def _requester(source: str, address: str) -> str:
    """Old kernels print a 16-bit requester id: eight bits of bus, five of device, three of function."""
    if ":" in source:
        return source
    number = int(source.replace(".", ""), 16) & 0xFFFF
    domain = address.partition(":")[0]
    return f"{domain}:{number >> 8:02x}:{number >> 3 & 0x1F:02x}.{number & 7}"


def peer_memory(text: str) -> Parts | None:
    """A note of nvidia-peermem, or of nv_peer_mem before it."""
    found = _PEERMEM.match(text)
    if not found:
        return None
    return {"kind": Kind.PEERMEM, "fields": {"function": found[1], "line": int(found[2]), "text": found[3]}}
