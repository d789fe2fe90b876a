"""What records of the rest of the machine mean: PCIe errors, machine checks, killed processes, GPUs that do not start.

One PCIe error is several lines: the port's report, the device's own, its status and bits; it counts once.
"""

from typing import Any

from agent.kernel.parsed import Kind, Parsed
from agent.probes.ruling import About, Part, Ruling
from vocab.events import Recovery, Severity
from vocab.pci import pci_address

_AER: dict[str, tuple[Severity, Recovery]] = {
    "corrected": (Severity.INFO, Recovery.NONE),  # the link repeated itself; its rate is for the counters to judge
    "nonfatal": (Severity.WARNING, Recovery.INVESTIGATE),  # a transaction was lost, the link is whole
    "fatal": (Severity.ERROR, Recovery.INVESTIGATE),  # the link is reset; if the GPU is gone, its Xid says so
}
NOBODY = "0000:00:00.0"  # a report with requester id 0 names nobody: then it is of whoever reports
_GIVEN_UP = {  # what became of the link or of the device
    "cannot_recover": Severity.ERROR,
    "recovery_failed": Severity.ERROR,
    "inaccessible": Severity.ERROR,
    "link_down": Severity.WARNING,  # of a slot: somebody may have pulled what was in it
}
# NV_STATUS of a start that failed, where it says what would help (open driver, nvstatuscodes)
# What no new start of the node mends: a person must plug the cable in, or install another driver.
_STARTS: dict[int, Recovery] = {
    0x1C: Recovery.CONTACT_SUPPORT,
    0x56: Recovery.INVESTIGATE,
    0x62: Recovery.RESET_GPU,
}
_STARTS_OF = {
    0x0F: "GPU is lost",
    0x1C: "a power cable is missing",
    0x56: "not supported by this driver",
    0x62: "reset required",
    0x65: "timeout",
    0x72: "memory error",
}


def rule_aer(record: Parsed) -> Ruling | None:
    """PCIe error reporting: a report or an error of its own; status and bits are not judged."""
    fields = record.fields
    event, source = fields.get("event"), fields.get("source")
    common: dict[str, Any] = {"code": "aer", "about": About.DEVICE, "burst": "aer"}
    if event in {"received", "contained"}:
        severity, recovery = _AER["fatal" if event == "contained" else fields["severity"]]  # the link is cut off
        place = pci_address(source) if source and source != NOBODY else record.pci
        shown = {"severity": fields["severity"], "reporter": record.reporter, "at": place or record.pci}
        return Ruling(pci=place, severity=severity, recovery=recovery, fields=shown, **common)
    if event == "bus_error":
        severity, recovery = _AER[fields["severity"]]
        shown = {"severity": fields["severity"], "layer": fields["layer"], "reporter": record.reporter}
        return Ruling(severity=severity, recovery=recovery, fields=shown | {"at": record.pci}, part=Part.ECHO, **common)
    if event in _GIVEN_UP:
        shown = {"outcome": event, "reporter": record.reporter, "at": record.pci}
        severity = _GIVEN_UP[event]
        return Ruling(code="aer", about=About.DEVICE, severity=severity, recovery=Recovery.INVESTIGATE, fields=shown)
    return None


def rule_mce(record: Parsed) -> Ruling | None:
    """A fault of processor or memory; lines that only add to one are not judged."""
    if "uncorrected" not in record.fields:
        return None
    uncorrected = bool(record.fields["uncorrected"])
    return Ruling(
        code="mce",
        about=About.HOST,
        severity=Severity.ERROR if uncorrected else Severity.WARNING,
        fields=dict(record.fields),
    )


def rule_init(record: Parsed) -> Ruling:
    """A GPU that the driver could not start. The second line of one failure only names its minor number."""
    fields = dict(record.fields)
    status = int(fields["status"], 16) if "status" in fields else -1
    if meaning := _STARTS_OF.get(status):
        fields["meaning"] = meaning
    return Ruling(
        code="gpu_init_failed",
        recovery=Recovery.INVESTIGATE if "reason" in fields else _STARTS.get(status),
        fields=fields,
        part=Part.PIECE if status < 0 else Part.WHOLE,
        burst="init",
    )


def rule_oom(record: Parsed) -> Ruling:
    """A process that the kernel killed for memory: told in two lines, the second with the sizes."""
    return Ruling(
        code="oom_kill",
        about=About.HOST,
        fields=dict(record.fields),
        part=Part.PIECE if "constraint" in record.fields else Part.CLOSING,
        burst=f"pid {record.pid}",
    )


def rule_nic(record: Parsed) -> Ruling:
    """A network adapter whose firmware refuses a command, or answers none any more; or a port that went down.

    One fall of a port is information, as where its counter shows it: what stays down, or falls often, ports show.
    """
    if "nic" in record.fields:
        device = f"nic:{record.fields['nic']}"
        return Ruling(
            code="nic_flap",
            about=About.HOST,
            severity=Severity.INFO,
            recovery=Recovery.NONE,
            device=device,
            fields=dict(record.fields),
        )
    fields = {name: value for name, value in record.fields.items() if name != "dead"}
    severity = Severity.ERROR if record.fields.get("dead") else None
    return Ruling(code="nic_command_failed", about=About.HOST, severity=severity, fields=fields)


def rule_fabric(record: Parsed) -> Ruling:
    """What the fabric manager says is wrong."""
    return Ruling(code="fabric_unhealthy", about=About.HOST, fields=dict(record.fields))


def rule_client(record: Parsed) -> Ruling:
    """A program with the library of another build: software of the node, and no GPU's fault.

    It may be that program's own library alone: the word of our own library on the driver is the harsher one.
    """
    fields = dict(record.fields)
    return Ruling(
        code="driver_library_mismatch",
        about=About.HOST,
        severity=Severity.WARNING,
        recovery=Recovery.INVESTIGATE,
        fields=fields,
    )


def rule_inforom(record: Parsed) -> Ruling:
    """A board whose InfoROM is corrupted."""
    return Ruling(code="inforom_corrupted")


_DISKS = {"timeout": Severity.WARNING, "controller_down": Severity.WARNING}  # the driver tries again by itself


def rule_disk(record: Parsed) -> Ruling:
    """A disk that does not do what it is asked."""
    severity = _DISKS.get(str(record.fields["what"]), Severity.ERROR)
    return Ruling(code="disk_error", about=About.HOST, severity=severity, fields=dict(record.fields))


def rule_filesystem(record: Parsed) -> Ruling:
    """A file system with an error, or one that takes no more writes."""
    return Ruling(code="filesystem_error", about=About.HOST, fields=dict(record.fields))


RULES = {
    Kind.AER: rule_aer,
    Kind.MCE: rule_mce,
    Kind.INIT_FAILED: rule_init,
    Kind.OOM: rule_oom,
    Kind.NIC: rule_nic,
    Kind.FABRIC: rule_fabric,
    Kind.DISK: rule_disk,
    Kind.FILESYSTEM: rule_filesystem,
    Kind.API_MISMATCH: rule_client,
    Kind.INFOROM: rule_inforom,
}
