"""Lines about the machine: what firmware reports through ACPI, EDAC, AMD's decoder, pages that failed."""

import pytest

from agent.kernel.parsed import Kind
from agent.kernel.parser import parse


def report(severity, *said, number=1, prefix="[ 100.000001] "):
    head = "Hardware error from APEI Generic Hardware Error Source: 1"
    return [f"{prefix}{{{number}}}[Hardware Error]: {line}" for line in (head, f"event severity: {severity}", *said)]


PCIE = (
    " Error 0, type: fatal",
    "  section_type: PCIe error",
    "  port_type: 0, PCIe end point",
    "  device_id: 0000:5e:00.0",
    "  vendor_id: 0x10de, device_id: 0x2330",
)


@pytest.mark.parametrize(
    ("said", "severity"), [("fatal", "fatal"), ("recoverable", "nonfatal"), ("corrected", "corrected")]
)
@pytest.mark.parametrize("prefix", ["", "[ 100.000001] ", "Jan 14 10:00:00 n kernel: ", "4,77,100000001,-;"])
def test_a_pcie_error_that_firmware_was_told_first_names_its_device(said, severity, prefix):
    (record,) = parse(report(said, *PCIE, prefix=prefix))
    assert (record.kind, record.pci, record.reporter) == (Kind.AER, "0000:5e:00", "firmware")
    assert record.fields["severity"] == severity


def test_a_memory_error_that_firmware_reports_is_one_of_the_machine():
    said = "  section_type: memory error", "  DIMM location: P0 DIMM_A1 "
    (record,) = parse(report("recoverable", *said))
    assert (record.kind, record.fields) == (
        Kind.MCE,
        {"section": "memory", "uncorrected": True, "dimm": "P0 DIMM_A1"},
    )


def test_two_reports_are_two_records_and_one_that_is_cut_off_says_nothing():
    lines = [*report("corrected", *PCIE), *report("fatal", *PCIE, number=2), *report("fatal", number=3)]
    assert [record.fields.get("severity") for record in parse(lines)] == ["corrected", "fatal", None]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (
            "EDAC MC3: 1 UE memory read error on CPU_SrcID#1_MC#1_Chan#2_DIMM#0 (channel:2 slot:0 page:0xb75)",
            {"controller": 3, "errors": 1, "dimm": "CPU_SrcID#1_MC#1_Chan#2_DIMM#0", "uncorrected": True},
        ),
        (
            "EDAC MC0: 4 CE error on CPU#0Channel#2_DIMM#0 (channel:2 slot:0)",
            {"controller": 0, "errors": 4, "dimm": "CPU#0Channel#2_DIMM#0", "uncorrected": False},
        ),
        (
            "[Hardware Error]: CPU:12 (19:11:1) MC27_STATUS[Over|UE|MiscV|-|PCC]: 0xfa20000000020c0f",
            {"cpu": 12, "bank": 27, "status": "fa20000000020c0f", "uncorrected": True},
        ),
        (
            "[Hardware Error]: CPU:12 (19:11:1) MC27_STATUS[Over|CE|MiscV]: 0xd820000000020c0f",
            {"cpu": 12, "bank": 27, "status": "d820000000020c0f", "uncorrected": False},
        ),
        (
            "Memory failure: 0x12345: recovery action for dirty LRU page: Recovered",
            {"page": "0x12345", "outcome": "Recovered", "uncorrected": True},
        ),
    ],
)
def test_a_fault_of_memory_or_processor_says_whether_it_was_corrected(text, fields):
    (record,) = parse([f"[1.0] {text}"])
    assert (record.kind, record.fields) == (Kind.MCE, fields)


@pytest.mark.parametrize(
    "text", ["EDAC skx MC3: HANDLING MCE MEMORY ERROR", "EDAC MC0: Giving out device to module skx_edac"]
)
def test_other_words_of_edac_are_nothing(text):
    assert list(parse([f"[1.0] {text}"])) == []
