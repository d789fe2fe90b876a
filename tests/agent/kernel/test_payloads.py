"""Payloads that are known from the driver's sources, beside those of the samples."""

import pytest

from agent.kernel.parser import parse
from agent.kernel.payloads import fields_of


@pytest.mark.parametrize(
    ("xid", "payload", "fields"),
    [
        (
            48,
            "An uncorrectable ECC error has been detected on GPU in GSP-RISCV location 3",
            {"unit": "GSP-RISCV", "location": 3},
        ),
        (
            64,
            "Row Remapper Error: (0x00000002eebc4100) - Row Remapping table is full",
            {"mechanism": "row_remap", "phys_addr": "0x00000002eebc4100", "reason": "Row Remapping table is full"},
        ),
        (
            64,
            "DRAM Retirement failed due to HW limit reached at 0x2eebc4100",
            {"mechanism": "dram_retirement", "phys_addr": "0x2eebc4100", "reason": "HW limit reached"},
        ),
        (
            74,
            "NVLink: fatal error detected on link 14(0x1, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
            {"link": 14, "registers": ["0x1", "0x0", "0x0", "0x0", "0x0", "0x0", "0x0"]},
        ),
        (
            95,
            "Uncontained: LTC DATA (0x2, 0x1). physAddr: 0x18f31d80 RST: Yes, D-RST: Yes",
            {
                "contained": False,
                "unit": "LTC DATA",
                "codes": ["0x2", "0x1"],
                "phys_addr": "0x18f31d80",
                "reset_required": True,
                "drain_reset": True,
            },
        ),
        (
            108,
            "NVLink remote translation error: faulted @ 0x7f5a_e7504000. Fault is of type FAULT_PDE ACCESS_TYPE_READ",
            {"fault_va": "0x7f5ae7504000", "fault_type": "FAULT_PDE", "access": "ACCESS_TYPE_READ"},
        ),
        (
            119,
            "Timeout after 6s of waiting for RPC response from GPU1 GSP! Expected function 10 (FREE) sequence 7 (0x1)",
            {
                "timeout_s": 6,
                "gpu_instance": 1,
                "function": 10,
                "function_name": "FREE",
                "data": ["0x1"],
                "sequence": 7,
            },
        ),
        (119, "Timeout waiting for RPC from GSP!", {"timeout_s": None, "gpu_instance": None}),
        (
            119,
            "Timeout waiting for RPC from GSP! Expected function FREE (0x0 0x0).",
            {"timeout_s": None, "gpu_instance": None, "function_name": "FREE", "data": ["0x0", "0x0"]},
        ),
        (
            120,
            "GSP kernel exception: store access page fault (cause:0xf) @ pc:0xffffffff93003d42, partition:4#0",
            {
                "cause": "store access page fault",
                "cause_code": "0xf",
                "pc": "0xffffffff93003d42",
                "partition": "4#0",
            },
        ),
        (
            120,
            "GSP Error: Task 1 raised error code 0x5 for reason 0x0 at 0x63f01ac (0 more errors skipped)",
            {"task": 1, "error_code": "0x5", "reason": "0x0"},
        ),
        (
            136,
            "NVLink: Link training failed for link 3(0x1, 0x2, 0x3, 0x4, 0x5, 0x6, 0x7)",
            {"link": 3, "registers": ["0x1", "0x2", "0x3", "0x4", "0x5", "0x6", "0x7"]},
        ),
        (
            143,
            "Error status 0x62 while polling for FSP boot complete, 0x1, 0x2, 0x3",
            {"error_status": "0x62"},
        ),
        (
            150,
            "MSE degraded  Fatal   XC0 i01 Link -1 (0x00000000 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)",
            {
                "unit": "MSE degraded",
                "fatal": True,
                "cross_contain": False,
                "injected": True,
                "link": -1,
                "intrinfo": "0x00000000",
                "error_status": "0x00000000",
                "subcode": 0,
                "debug": ["0x00000000"] * 4,
            },
        ),
        (
            155,
            "NVLINK_SW_DEFINED_ERROR  Fatal   XC1 i00 Link 09 : Link Down While Active.",
            {"unit": "NVLINK_SW_DEFINED_ERROR", "fatal": True, "cross_contain": True, "injected": False, "link": 9},
        ),
        (156, "Retiring TPC 4 from GPC 2 with a spare from the same GPC.", {"tpc": 4, "gpc": 2}),
        (
            160,
            "Marking Channel 5 in FBPA 1 along with its pair for repair. Perform GPU reset to activate repair.",
            {"unit": "channel", "unit_number": 5, "fbpa": 1, "action": "GPU reset"},
        ),
        (
            160,
            "Marking LTS 5 in FPB 1 along with its pair for repair. Perform GPU reset to activate repair.",
            {"unit": "lts", "unit_number": 5, "fbpa": 1, "action": "GPU reset"},
        ),
        (175, "GPU memory subsystem timeout (type 2) detected", {"type": 2}),
        (
            177,
            "Bank Remapper: New bank marked for remapping, reset gpu to activate.",
            {"mechanism": "bank_remap", "phys_addr": None},
        ),
        (154, "GPU recovery action changed", {}),
        (119, "", {}),
        (999, "Ch 0000000a", {"channel": 10}),
    ],
)
def test_payload_carries_its_fields(xid, payload, fields):
    assert fields_of(xid, payload) == fields


@pytest.mark.parametrize(
    ("owner", "pid", "name"),
    [
        ("pid=7, name=a,b, ", 7, "a,b"),
        ("pid=7, name=a, b, ", 7, "a, b"),
        ("pid=7, name=nvc:[driver], ", 7, "nvc:[driver]"),
        ("pid=7, name=fifteen, chars, ", 7, "fifteen, chars"),
        ("pid='<unknown>', name=<unknown>, ", None, None),
        ("pid='N/A', ", None, None),
        ("pid=<n/a>, name='<unknown>', ", None, None),
        ("pid='7', name='python3', ", 7, "python3"),
        ("pid=0, ", None, None),
        ("pid=7, ", 7, None),
        ("", None, None),
    ],
)
def test_owner_of_a_channel(owner, pid, name):
    payload = "Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x1"
    (record,) = parse([f"NVRM: Xid (PCI:0000:01:00): 109, {owner}{payload}"])
    assert (record.pid, record.name) == (pid, name)
    assert record.payload == payload


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (
            "Non-fatal, Link 32 egress non-posted PRIV error (First)",
            {"severity": "non-fatal", "link": 32, "text": "egress non-posted PRIV error", "first": True},
        ),
        ("Correctable, Link 03 RX Replay", {"severity": "correctable", "link": 3, "text": "RX Replay", "first": False}),
        (
            "Non-fatal, PRI timeout, instance=4, chiplet=2",
            {
                "severity": "non-fatal",
                "link": None,
                "instance": 4,
                "chiplet": 2,
                "text": "PRI timeout",
                "first": False,
            },
        ),
        ("Fatal, Link 04", {"severity": "fatal", "link": 4, "text": None, "truncated": True}),
        ("Data {0x1, 0x2", {"data": ["0x1", "0x2"], "truncated": True}),
    ],
)
def test_switch_lines(text, fields):
    (record,) = parse([f"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, {text}"])
    assert record.fields == fields


def test_aer_status_line():
    (record,) = parse(["pcieport 0000:00:03.0:   device [8086:2030] error status/mask=00004000/00000000"])
    assert record.fields == {"event": "status", "device": "8086:2030", "status": "00004000", "mask": "00000000"}
