"""What kind of record a kernel text is, and its parts. One function a kind; the first that answers wins."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from agent.kernel.bus import device, peer_memory
from agent.kernel.client import refused
from agent.kernel.firmware import report_head
from agent.kernel.host import adapter, fabric, killed
from agent.kernel.inforom import corrupted
from agent.kernel.machine import machine_check
from agent.kernel.parsed import Kind
from agent.kernel.payloads import fields_of
from agent.kernel.starts import probe_failed, region_missing, start_failed
from agent.kernel.storage import storage
from agent.kernel.switch import sxid
from vocab.events import Mig
from vocab.pci import pci_address

Parts = dict[str, Any]

MARK = "NVRM: "

_XID = re.compile(r"Xid(?: \(([^)]{0,80})\))?: {0,4}(\d{1,6})(?:, {0,8}|,?$| (?=\())")  # the oldest name no GPU
_MIG = re.compile(r" GPU-I:(\d{1,4})(?: GPU-CI:(\d{1,4}))?$")
_PID = re.compile(r"pid=(?:'?(\d{1,10})'?|'[^',]{0,20}'|<[^>,]{0,20}>)(?:, {0,4}|$)")  # in words: unknown
_NAME = "name="
_COMM = 15  # TASK_COMM_LEN less its end
_UNKNOWN = frozenset({"<unknown>", "<n/a>", "N/A", "n/a", ""})
# How payloads begin: tells the end of a name that holds a comma.
_PAYLOAD_START = re.compile(
    r"(?:Ch |Channel |channel |Graphics |Class |Illegal |An uncorrectable |Row Remapper|Dynamic Page |Contained|"
    r"Uncontained|Timeout |GSP |NVLink|GPU |errorString |[A-Z][A-Z0-9_]{2,40} |[0-9a-f]{4,8}[ (]|\.\.\.)"
)

_GPU_AT = re.compile(r"GPU at (?:PCI:)?([0-9a-fA-F:]{7,20}): (GPU-[0-9a-fA-F-]{8,60})")
_GPU_AT_FALLEN = re.compile(r"GPU at (?:PCI:)?([0-9a-fA-F:.]{7,20}) has fallen off the bus")
_GPU_SAYS = re.compile(r"GPU ([0-9a-fA-F:.]{7,20}): (.{1,4000})", re.DOTALL)
_BOARD_SERIAL = re.compile(r"GPU Board Serial Number: (\S{0,40})")
_SERIAL = re.compile(r"GPU serial number is (\S{0,40}?)\.?$")
_RATE = re.compile(
    r"Rate limiting GSP RPC error prints for GPU at (?:PCI:)?([0-9a-fA-F:.]{7,20}) \(printing 1 of every (\d{1,6})\)"
)
_BANNER = re.compile(r"loading NVIDIA UNIX (.{1,80}?) {1,4}(\d{3}\.\d{1,3}(?:\.\d{1,3})?)(?: |$)")
_PROBED = re.compile(r"The NVIDIA GPU ([0-9a-fA-F:.]{7,20})")
_PCI_ID = re.compile(r"\(PCI ID: ([0-9a-f]{4}:[0-9a-f]{4})\)")
_FUNCTION = re.compile(r"(?:GPU(\d{1,4}) )?([A-Za-z_][A-Za-z0-9_]{2,80}): (.{1,4000})", re.DOTALL)
_STATUS_NAME = re.compile(r"\[(NV_ERR_[A-Z_0-9]{1,60})\](?: \((0x[0-9a-fA-F]{1,8})\))?")
_STATUS_CODE = re.compile(r"\bstatus (0x[0-9a-fA-F]{1,8})\b")

_ORPHANS = ("GSP task ", "Reported by libos ", "RISC-V CSR State", "RISC-V GPR State")
FALLEN = "fallen off the bus"
BUS_LOST = 79  # the Xid that a line about a GPU off the bus stands for, where none is printed
_RPC_TIMEOUT = 119


@lru_cache(maxsize=64)  # a storm says the same again and again
def classify(text: str) -> Parts | None:
    """The parts of a kernel text (as arguments of ``Parsed``; not to be changed), None if it is nothing of ours."""
    if text.startswith(MARK):
        return corrupted(text) or driver(text[len(MARK) :])
    for reader in _OTHERS:
        if parts := reader(text):
            return parts
    return {"kind": Kind.CONTINUATION, "text": text} if text.startswith(_ORPHANS) else None


def looks_like_xid(text: str) -> bool:
    """Whether a text claims to be an Xid or SXid; one that does and cannot be read is counted."""
    return text.startswith(("NVRM: Xid", "nvidia-nvswitch")) and "Xid" in text[:40]


def driver(text: str) -> Parts | None:
    """A text behind ``NVRM: ``. None for a line that claims to be an Xid and is not one."""
    if text.startswith("Xid"):
        return _xid(text)
    for reader in _NVRM:
        if parts := reader(text):
            return parts
    return {"kind": Kind.TEXT, "text": text}


def _xid(text: str) -> Parts | None:
    head = _XID.match(text)
    if not head:
        return None
    place, xid = head[1] or "", int(head[2])
    mig = _MIG.search(place)
    address = (place[: mig.start()] if mig else place).removeprefix("PCI:")
    pid, name, payload = _owner(text[head.end() :])
    return {
        "kind": Kind.XID,
        "pci": pci_address(address),
        "xid": xid,
        "pid": pid,
        "name": name,
        "mig": Mig(gi=int(mig[1]), ci=int(mig[2]) if mig[2] else None) if mig else None,
        "payload": payload,
        "fields": fields_of(xid, payload),
    }


def _owner(text: str) -> tuple[int | None, str | None, str]:
    """pid, name and payload; pid 0 (no process) and ``<unknown>`` are None."""
    found = _PID.match(text)
    if not found:
        return None, None, text
    pid = int(found[1] or 0) or None
    rest = text[found.end() :]
    if not rest.startswith(_NAME):
        return pid, None, rest
    name, payload = _named(rest[len(_NAME) :])
    if len(name) > 1 and name[0] == name[-1] == "'":
        name = name[1:-1]
    return pid, None if name in _UNKNOWN else name, payload


def _named(text: str) -> tuple[str, str]:
    """Name and payload. A name has at most 15 bytes and may hold commas: the payload's known start tells its end."""
    first: tuple[str, str] | None = None
    comma = text.find(",", 0, _COMM + 1)
    while comma >= 0:
        split = text[:comma], text[comma + 1 :].lstrip(" ")
        if _PAYLOAD_START.match(split[1]):
            return split
        first = first or split
        comma = text.find(",", comma + 1, _COMM + 1)
    if first:
        return first
    name, _, payload = text.partition(",")
    return name, payload.lstrip(" ")


def _gpu_at(text: str) -> Parts | None:
    if found := _GPU_AT.match(text):
        return {"kind": Kind.GPU_AT, "pci": pci_address(found[1]), "uuid": found[2]}
    if found := _GPU_AT_FALLEN.match(text):
        return {"kind": Kind.FALLEN, "pci": pci_address(found[1]), "implied_xid": BUS_LOST}
    return None


def _board_serial(text: str) -> Parts | None:
    found = _BOARD_SERIAL.match(text)
    owner = "the GPU of the preceding 'GPU at' line"
    return found and {"kind": Kind.SERIAL, "serial": found[1], "applies_to": owner}


def _gpu_says(text: str) -> Parts | None:
    """``GPU 0000:91:00.0: …``: off the bus, its serial number, a failed start, or any other text about it."""
    found = _GPU_SAYS.match(text)
    if not found or (pci := pci_address(found[1])) is None:
        return None
    said = found[2]
    if said.startswith("GPU has " + FALLEN):
        return {"kind": Kind.FALLEN, "pci": pci, "implied_xid": BUS_LOST}
    if serial := _SERIAL.match(said):
        return {"kind": Kind.SERIAL, "pci": pci, "serial": serial[1]}
    return start_failed(said, pci) or {"kind": Kind.TEXT, "pci": pci, "text": said}


def _rate_limit(text: str) -> Parts | None:
    found = _RATE.match(text)
    if not found:
        return None
    fields = {"one_of": int(found[2])}
    return {"kind": Kind.RATE_LIMIT, "pci": pci_address(found[1]), "fields": fields, "implied_xid": _RPC_TIMEOUT}


def _banner(text: str) -> Parts | None:
    found = _BANNER.match(text)
    return found and {"kind": Kind.BANNER, "driver": found[2], "open_module": "Open Kernel Module" in found[1]}


def _probed(text: str) -> Parts | None:
    """What the driver says at probe time about a device it cannot take; the record may be spread over lines."""
    found = _PROBED.match(text)
    if not found:
        return None
    pci = pci_address(found[1])
    if FALLEN not in text[:400]:
        return {"kind": Kind.TEXT, "pci": pci, "text": text.split("\n", 1)[0]}
    device_id = _PCI_ID.search(text[:400])
    return {
        "kind": Kind.FALLEN,
        "pci": pci,
        "implied_xid": BUS_LOST,
        "at_probe": True,
        "pci_id": device_id[1] if device_id else None,
    }


def _function(text: str) -> Parts | None:
    """``[GPU3 ]functionName: text``, the driver's internal notes, with the NV_STATUS that they name."""
    found = _FUNCTION.match(text)
    if not found:
        return None
    said = found[3]
    fields: Parts = {"gpu_instance": int(found[1]) if found[1] else None, "function": found[2], "text": said}
    if status := _STATUS_NAME.search(said):
        fields["nv_status"] = status[1]
        fields |= {"nv_status_code": int(status[2], 16)} if status[2] else {}
    elif code := _STATUS_CODE.search(said):
        fields["nv_status_code"] = int(code[1], 16)
    return {"kind": Kind.TEXT, "fields": fields}


_NVRM: tuple[Callable[[str], Parts | None], ...] = (
    _gpu_at, _board_serial, _gpu_says, start_failed, _rate_limit, _banner, _probed, region_missing, refused, _function,
)  # fmt: skip
_OTHERS: tuple[Callable[[str], Parts | None], ...] = (
    sxid, probe_failed, device, machine_check, report_head, peer_memory, killed, adapter, fabric, storage, corrupted,
)  # fmt: skip
