"""Any line, from anybody: nothing breaks, nothing runs into its neighbours, and what a program wrote stays made up."""

import json
import string
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from agent.judge import Judge
from agent.kernel.parsed import Kind
from agent.kernel.parser import parse
from tests.agent.made import NODE, events, inventory, record
from vocab.pci import pci_address

SAMPLES = json.loads((Path(__file__).resolve().parents[2] / "data" / "kernel_lines.json").read_text())
TEXTS = [sample["text"] for sample in SAMPLES]
NOISE = "Mar  1 10:00:00 node sshd[812]: Accepted publickey for root"

# What stands in front of the kernel's text, in each form that says where the text begins.
PREFIXES = (
    "",
    "[12345.678901] ",
    "[  130.456250][ T1946] ",
    "[Fri Aug 30 11:43:09 2024] ",
    "[  +0.000844] ",
    "kern  :err   : 2025-01-25T10:34:54,859532+00:00 ",
    "3,2211,12345678901,-;",
    "6,1,5000000,-,caller=T77;",
    "<4>[ 1234.500000] ",
    "Sep 19 13:28:09 node-a kernel: ",
    "Sep 19 13:28:09 node-a kernel: [12345.678901] ",
    "2025-01-25T10:34:54.859532+00:00 node-a kernel: ",
    "kernel: ",
)
SIMPLE = [
    parsed[0].payload and f"NVRM: Xid (PCI:{parsed[0].pci}): {parsed[0].xid}, {parsed[0].payload}"
    for text in TEXTS
    if "\n" not in text and (parsed := list(parse([text]))) and parsed[0].kind is Kind.XID
]
SIMPLE = [text for text in SIMPLE if text and "\\x" not in text]

samples = st.sampled_from(TEXTS)
words = st.sampled_from(
    [
        "NVRM: ",
        "Xid (PCI:0000:10:00): ",
        "79, ",
        "154, ",
        "13, ",
        "pid=",
        "name=",
        "GPU at ",
        "(",
        ")",
        ": ",
        ", ",
        "0x",
    ]
)
pieces = st.lists(words | st.text(string.printable + "\x1f\0é\u2028", max_size=8), max_size=12).map("".join)
damaged = st.builds(lambda text, at, more: text[:at] + more + text[at + 3 :], samples, st.integers(0, 200), pieces)
lines = samples | damaged | pieces | st.text(max_size=80)


def plain(records):
    return [{name: value for name, value in found.to_json().items() if name != "prefix"} for found in records]


@given(st.lists(lines, max_size=12))
def test_no_line_breaks_the_parser_and_all_that_it_gives_can_be_printed(several):
    for found in parse(several):
        msgspec.json.encode(found.to_json())
        assert found.pci is None or found.pci == pci_address(found.pci)


@given(st.lists(samples, max_size=12))
def test_records_with_a_line_between_them_are_what_they_are_alone(chosen):
    joined = [line for text in chosen for line in [*text.split("\n"), NOISE]]
    alone = [found for text in chosen for found in parse(text.split("\n"))]
    assert [found.to_json() for found in parse(joined)] == [found.to_json() for found in alone]


@given(st.sampled_from(SIMPLE), st.sampled_from(PREFIXES))
def test_prefix_says_nothing_of_what_comes_after_it(text, prefix):
    found = list(parse([prefix + text]))
    assert plain(found) == plain(parse([text]))
    assert len(found) == 1


@given(st.lists(pieces, max_size=3), st.sampled_from(PREFIXES))
def test_prefix_makes_no_record_of_a_text_that_is_none(texts, prefix):
    for text in texts:
        assume(not text.startswith(("[", " ", "\t")) and "\n" not in text and "\r" not in text and "\\x" not in text)
        assume(list(parse([text])) == [])
        assert list(parse([prefix + text])) == []


def play(several):
    """The events of these (line, facility), half a tenth of a second apart, so that a record may go on in the next."""
    judge, items = Judge(NODE), []
    items += judge.observe(inventory(), 0.0)
    for number, (line, facility) in enumerate(several, 1):
        now = number * 0.05
        if (due := judge.next_deadline()) is not None and due <= now:
            items += judge.tick(now)
        items += judge.observe(record(now, line, facility=facility), now)
    return events([*items, *judge.close(1000.0)])


programs = st.sampled_from([1, 2, 3, 23])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(lines, programs), max_size=12))
def test_what_programs_write_into_the_kernel_log_is_injected(several):
    assert all(event.injected for event in play(several))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(lines, programs), max_size=12))
def test_a_raw_record_says_itself_that_a_program_wrote_it(several):
    raw = [(f"{facility * 8 + 4},{number},{number * 100000},-;{line}", None) for number, (line, facility) in
           enumerate(several, 1)]  # fmt: skip
    assert all(event.injected for event in play(raw) if event.source == "kernel" and event.code.startswith("xid:"))


def last_said(found):
    """The last revision of each event that nobody made up."""
    return {event.id: (event.code, event.gpu, event.count, event.severity, event.recovery) for event in found
            if not event.injected}  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(lines, st.just(0)), max_size=6), st.data())
def test_what_programs_write_changes_nothing_of_what_the_kernel_says(several, data):
    forged = [*several]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(forged)))
        forged.insert(at, (data.draw(lines), 1))
        several.insert(at, (NOISE, 1))
    assert last_said(play(forged)) == last_said(play(several))


@pytest.mark.parametrize(
    ("start", "more"),
    [
        ("NVRM: Xid (PCI:0000:10:00): 13, pid=7, name=", "a,"),
        ("NVRM: Xid (PCI:0000:10:00): 13, ", "0x1=0x1 "),
        ("NVRM: Xid (PCI:0000:10:00): 74, NVLink: fatal error detected on link 1(", "0x1, "),
        ("NVRM: Xid (PCI:0000:10:00): 145, ", "UNIT "),
        ("NVRM: Xid (PCI:0000:10:00): 140, ", "DRAM:1 "),
        ("NVRM: Xid (PCI:0000:10:00): 119, ", "after 1s of waiting "),
        ("NVRM: ", "GPU at PCI:"),
        ("3,1,1,-;NVRM: ", "\\x0a"),
        ("", "["),
        ("", " "),
        ("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 1, Fatal, ", "Link 1 , instance=1"),
        ("pcieport 0000:00:01.0: ", "AER: "),
    ],
    ids=range(12),
)
def test_cost_of_a_line_grows_no_faster_than_the_line(start, more):
    def seconds(times):
        began = time.process_time()
        list(parse([start + more * times, "x"]))
        return time.process_time() - began

    seconds(10)
    short, long = (min(seconds(times) for _ in range(3)) for times in (2000, 16000))
    assert long < 30 * short + 0.02, "eight times the line; the square would be sixty-four times the work"
