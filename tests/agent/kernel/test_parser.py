"""Records of several lines, in every way in which they arrive; and input that means harm."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.kernel.parsed import Kind
from agent.kernel.parser import Parser, of_interest, parse

SAMPLES = json.loads((Path(__file__).resolve().parents[2] / "data" / "kernel_lines.json").read_text())
LOST = {"kind": "nvrm_fallen_off_bus", "pci": "0000:4e:00", "implied_xid": 79, "at_probe": True, "pci_id": "10de:2330"}
HEAD = "NVRM: The NVIDIA GPU 0000:4e:00.0"
MIDDLE = "NVRM: (PCI ID: 10de:2330) installed in this system has"
END = "NVRM: fallen off the bus and is not responding to commands."
ESCAPED = rf"{HEAD}\x0a{MIDDLE}\x0a{END}"


def bare(record):
    return {name: value for name, value in record.to_json().items() if name not in ("prefix", "extra_lines")}


@pytest.mark.parametrize(
    "lines",
    [
        ["4,901,41200000,-;" + ESCAPED, " SUBSYSTEM=pci", " DEVICE=+pci:0000:4e:00.0"],
        ["4,901,41200000,-;" + ESCAPED + "\n SUBSYSTEM=pci\n DEVICE=+pci:0000:4e:00.0"],
        [f"[   41.200000] {text}" for text in (HEAD, MIDDLE, END)],
        [f"[   41.200000] {HEAD}", f"               {MIDDLE}", f"               {END}"],
        [f"[   41.200000] {HEAD}\n{MIDDLE}\n{END}"],
        [f"[   41.200000] {HEAD} (PCI ID: 10de:2330) installed in this system has fallen off the bus and is gone."],
    ],
    ids=["kmsg", "kmsg with properties", "three records", "indented", "newlines", "one line"],
)
def test_gpu_lost_at_probe_time_is_one_record(lines):
    assert [bare(record) for record in parse(lines)] == [LOST]


def test_a_gpu_that_the_driver_cannot_take_is_not_lost():
    (record,) = parse([HEAD, "NVRM: (PCI ID: 10de:2330) installed in this system is", "NVRM:  not supported by it"])
    assert record.kind is Kind.TEXT
    assert record.pci == "0000:4e:00"


def test_another_device_off_the_bus_is_not_ours():
    assert not list(parse(["[ 8812.5] mlx5_core 0000:4e:00.0: device has fallen off the bus (test string)"]))


def test_tables_below_a_firmware_timeout_belong_to_it():
    lines = [
        "[10.1] NVRM: Xid (PCI:0000:9b:00): 119, Timeout waiting for RPC from GSP1! Expected function 10 (FREE) (0x1)",
        "[10.1] NVRM: GPU4 GSP RPC buffer contains function 10 (FREE) and data 0x1 0x0.",
        "[10.1] NVRM: GPU4 RPC history (CPU -> GSP):",
        "[10.1] NVRM:     entry function                   data0              data1",
        "[10.1] NVRM:      0    10   FREE                  0x1                0x0",
        "[10.2] CPU: 27 PID: 2024380 Comm: nvidia-smi Tainted: P",
        "[10.3] NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset)",
    ]
    timeout, advice = parse(lines)
    assert (timeout.xid, timeout.extra_lines) == (119, 4)
    assert timeout.lines == tuple(lines[:5])
    assert (advice.xid, advice.fields["action_to"]) == (154, 1)


def test_nothing_delays_an_xid_79():
    parser = Parser()
    (record,) = parser.feed("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")
    assert record.xid == 79
    assert not parser.holding


def test_an_xid_without_payload_waits_for_its_next_line():
    parser = Parser()
    assert parser.feed("NVRM: Xid (0000:01:00): 16, ") == []
    assert parser.holding
    assert parser.feed("Head 00000000 Count 00006e2e") == []
    (record,) = parser.flush()
    assert record.payload == "Head 00000000 Count 00006e2e"
    assert not parser.holding


def test_an_xid_without_payload_does_not_take_the_next_record():
    first, second = parse(["NVRM: Xid (PCI:0000:01:00): 46", "NVRM: Xid (PCI:0000:01:00): 45, Ch 00000001"])
    assert (first.xid, first.payload) == (46, "")
    assert second.xid == 45


def test_a_line_that_only_claims_to_be_an_xid_is_counted():
    parser = Parser()
    assert parser.feed("NVRM: Xid error: xyz, invalid data") == []
    assert parser.feed("nvidia-nvswitch0: SXid (PCI:") == []
    assert (parser.lines, parser.parsed, parser.unparsed) == (2, 0, 2)


def test_escaped_bytes_of_a_record_become_text():
    (record,) = parse([r"4,1,1,-;NVRM: Xid (PCI:0000:01:00): 13, pid=7, name=\xc3\xa4\xff, Ch 00000001"])
    assert record.name == "ä\ufffd"


def test_number_of_a_program_is_kept():
    (record,) = parse(["12,7,1000000,-;NVRM: Xid (PCI:0000:01:00): 79, forged"])
    assert record.prefix.priority == 12
    assert "priority" not in record.to_json()["prefix"]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: str(sample["sample"]))
def test_quick_look_lets_every_sample_through(sample):
    assert of_interest(sample["text"].split("\n")[0])


ALPHABET = st.characters(codec="utf-8")
HEADS = st.sampled_from(
    [
        "",
        "NVRM: ",
        "NVRM: Xid (PCI:0000:01:00): ",
        "nvidia-nvswitch0: SXid (PCI:0000:01:00.0): ",
        "[1.0] NVRM: GPU ",
        "  ",
    ]
)


@given(st.lists(st.tuples(HEADS, st.text(ALPHABET, max_size=200)).map("".join), max_size=8))
@settings(max_examples=200, deadline=None)
def test_no_text_breaks_the_parser(lines):
    for record in parse(lines):
        json.dumps(record.to_json())


@st.composite
def mutated(draw):
    text = draw(st.sampled_from(SAMPLES))["text"]
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 12)))
    return text[:start] + draw(st.text(max_size=6)) + text[end:]


@given(st.lists(mutated(), min_size=1, max_size=4))
@settings(max_examples=300, deadline=None)
def test_no_damage_breaks_the_parser(texts):
    lines = [line for text in texts for line in text.split("\n")]
    parser = Parser()
    records = [record for line in lines for record in parser.feed(line)] + parser.flush()
    for record in records:
        json.dumps(record.to_json())
    assert parser.parsed == len(records)


LONG = 1 << 20


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: " + "a" * LONG,
        "NVRM: " + "a: " * (LONG // 3),
        "NVRM: Xid (" + "0" * LONG,
        "NVRM: Xid (PCI:0000:01:00): 31, " + "Ch 0000000b, " * (LONG // 13),
        "NVRM: Xid (PCI:0000:01:00): 13, pid=1, name=" + "," * LONG,
        "NVRM: Xid (PCI:0000:01:00): 119, Timeout after " + "1" * LONG,
        "NVRM: Xid (PCI:0000:01:00): 149, " + "A " * (LONG // 2),
        "NVRM: Xid (PCI:0000:01:00): 140, " + "AB:1 " * (LONG // 5),
        "nvidia-nvswitch0: SXid (PCI:0000:01:00.0): 12028, Data {" + "0x1, " * (LONG // 5),
        "[" + " " * LONG + "NVRM: ",
        "Sep 19 13:28:09 " + "h" * LONG + " kernel: NVRM: ",
        "4,1,1," + "c" * LONG + ";NVRM: ",
        r"4,1,1,-;NVRM: " + r"\x0a" * (LONG // 4),
        "mce: [Hardware Error]: " + "CPU " * (LONG // 4),
        "pcieport 0000:00:03.0: AER: " + " " * LONG,
        "nv_mem " + "a" * LONG + ":1 x",
    ],
    ids=lambda line: line[:40].strip(),
)
def test_a_line_of_a_megabyte_is_only_long(line):
    assert len(list(parse([line, line]))) <= 2
