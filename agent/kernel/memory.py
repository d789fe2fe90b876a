"""What the payloads of the memory Xids carry: ECC, containment, remapping, retirement and repair."""

import re

from agent.kernel.reading import Fields, channel, numbers, strings

_ECC_UNIT = re.compile(r"\bdetected on GPU in (?:the )?([A-Za-z0-9_ -]{1,60}?)(?= at | location |\.|$)")
_PHYSICAL = re.compile(r"\bphysAddr:? (0x[0-9a-fA-F]{1,16})")
_PARTITION = re.compile(r"\bpartition (\d{1,6})")
_SUBPARTITION = re.compile(r"\bsubpartition (\d{1,6})")
_LOCATION = re.compile(r"\blocation (\d{1,9})")
_PAREN_HEX = re.compile(r"\((0x[0-9a-fA-F]{1,16})\)")
_CONTAINED = re.compile(r"(Contained|Uncontained): ([^(.]{1,80})")
_CODES = re.compile(r"\(([0-9a-fA-Fx, ]{1,80})\)")
_RST = re.compile(r"\bRST: (Yes|No), D-RST: (Yes|No)")
_COUNT = re.compile(r"\b([A-Z]{2,12}):(\d{1,12})\b")
_TPC = re.compile(r"\bTPC (\d{1,4}) from GPC (\d{1,4})")
_REPAIR = re.compile(r"Marking (Channel|LTS) (\d{1,4}) in (?:FBPA|FBPB|FBP|FPB) (\d{1,4})")  # FPB: the driver's own
_PERFORM = re.compile(r"\bPerform (.{1,60}) to activate repair")
_RETIREMENT = re.compile(r"DRAM Retirement failed due to (.{1,80}?)(?: at (0x[0-9a-f]{1,16}))?$")


def uncorrectable(text: str) -> Fields:
    """Where an uncorrectable (or too frequent) error sits: the unit, and in memory address and partition."""
    return {
        **strings(_ECC_UNIT, text, "unit"),
        **strings(_PHYSICAL, text, "phys_addr"),
        **numbers(_PARTITION, text, "partition"),
        **numbers(_SUBPARTITION, text, "subpartition"),
        **numbers(_LOCATION, text, "location"),
    }


def repair_record(text: str) -> Fields:
    """Xids 63 and 64: row remapping (Ampere and later), page retirement before, DRAM retirement in new drivers."""
    address = _PAREN_HEX.search(text)
    where = address[1] if address else None
    if text.startswith("Dynamic Page Retirement"):
        return {"mechanism": "page_retirement", "page": where}
    if found := _RETIREMENT.match(text):
        return {"mechanism": "dram_retirement", "phys_addr": found[2], "reason": found[1]}
    if not text.startswith(("Row Remapper", "Bank Remapper")):
        return {}
    fields: Fields = {"mechanism": "row_remap" if text.startswith("Row") else "bank_remap", "phys_addr": where}
    reason = text.partition(") - ")[2]
    return {**fields, "reason": reason} if reason else fields


def containment(text: str) -> Fields:
    """Xids 94 and 95: what was hit, whether it was contained, and the reset that the driver wants; or a channel."""
    found = _CONTAINED.match(text)
    if not found:
        return channel(text)
    fields: Fields = {"contained": found[1] == "Contained", "unit": found[2].strip()}
    codes = _CODES.match(text, found.end())
    fields["codes"] = [word for word in re.split(r"[, ]+", codes[1]) if word] if codes else []
    fields |= strings(_PHYSICAL, text, "phys_addr")
    if reset := _RST.search(text):
        fields |= {"reset_required": reset[1] == "Yes", "drain_reset": reset[2] == "Yes"}
    return fields


def escape(text: str) -> Fields:
    """Xid 140: counts of errors by unit."""
    counts = {name: int(count) for name, count in _COUNT.findall(text)}
    return {"counts": counts} if counts else {}


def repair(text: str) -> Fields:
    """Xid 160: which unit was marked, and the act that makes the repair count, in the driver's own word."""
    found = _REPAIR.search(text)
    fields: Fields = {"unit": found[1].lower(), "unit_number": int(found[2]), "fbpa": int(found[3])} if found else {}
    return fields | strings(_PERFORM, text, "action")


def cluster(text: str) -> Fields:
    """Xids 156 and 157: the SM cluster that is retired, or cannot be."""
    return numbers(_TPC, text, "tpc", "gpc")
