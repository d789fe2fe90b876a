"""``corral scan``: files of every form in; records, events or a table out; counts and exit codes."""

import gzip
import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.kernel.stamps import zone
from corral.scan import scan
from vocab.errors import InputError

SAMPLES = json.loads((Path(__file__).resolve().parents[1] / "data" / "kernel_lines.json").read_text())
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC).timestamp()
LOST = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
FAULT = "NVRM: Xid (PCI:0000:3b:00): 31, pid=100, name=python, Ch 00000002"


@pytest.fixture
def run(tmp_path):
    """Scan these texts, one file each; gives exit code, standard output and standard error."""

    def scanned(*texts, mode="json", tz=None, now=NOW, boot_time=None, paths=()):
        files = []
        for number, text in enumerate(texts):
            files.append(tmp_path / f"{number}.log")
            files[-1].write_bytes(text if isinstance(text, bytes) else text.encode())
        out, err = io.StringIO(), io.StringIO()
        code = scan([*map(str, files), *paths], mode, tz, now, boot_time, out, err)
        return code, out.getvalue(), err.getvalue()

    return scanned


@pytest.fixture
def events(run):
    """The events of these texts."""

    def seen(*texts, **options):
        return [json.loads(line) for line in run(*texts, **options)[1].splitlines()]

    return seen


def test_parse_prints_the_parse_of_every_sample(run):
    text = "\n".join(sample["text"] for sample in SAMPLES) + "\n"
    _, out, err = run(text, mode="parse")
    assert [json.loads(line) for line in out.splitlines()] == [sample["expected"] for sample in SAMPLES]
    assert f"{len(text.splitlines())} lines, 127 parsed, 0 like an Xid" in err


def test_json_prints_one_event_a_line(events):
    (event,) = events(f"2026-06-01T15:55:06.218036+03:00 node-a kernel: {LOST}\n")
    assert event["code"] == "xid:79"
    assert event["severity"] == "critical"
    assert event["recovery"] == "reboot_node"
    assert event["pci"] == "0000:3b:00"
    assert event["node"] == "node-a"
    assert event["at"] == "2026-06-01T12:55:06.218036Z"
    assert event["evidence"][0]["line"].endswith(LOST)


def test_text_prints_a_table(run):
    code, out, _ = run(f"[   12.500000] {LOST}\n", mode="text")
    head, row = out.splitlines()
    assert code == 1
    assert head.split() == ["TIME", "GPU", "CODE", "SEVERITY", "ADVICE", "LINE"]
    assert "boot +12.500000 s" in row
    assert "0000:3b:00" in row
    assert "reboot_node" in row


def test_control_characters_do_not_reach_the_terminal(run):
    _, out, _ = run("NVRM: Xid (PCI:0000:3b:00): 79, \x1b[31mred\x07\n", mode="text")
    assert "\x1b" not in out
    assert "\x07" not in out


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (f"[1.0] {LOST}", 1),
        (f"[1.0] {FAULT}", 0),
        ("[1.0] usb 1-1: new device", 0),
        (f"12,7,1000000,-;{LOST}", 0),  # a program wrote it: facility 1
        (f"3,7,1000000,-;{LOST}", 1),
        ("[1.0] NVRM: Xid (PCI:0009:01:00): 149, NETIR_LINK_EVT Fatal XC0 i1  Link 03 (0x0253a1c6 0x0)", 0),
        ("[1.0] NVRM: Xid (PCI:0009:01:00): 149, NETIR_LINK_EVT Fatal XC0 i00  Link 03 (0x0253a1c6 0x0)", 1),
    ],
)
@pytest.mark.parametrize("mode", ["parse", "json", "text"])
def test_exit_code_says_whether_something_real_is_bad(run, line, code, mode):
    assert run(line + "\n", mode=mode)[0] == code


def test_unreadable_file_is_named_and_the_others_are_printed(run):
    code, out, err = run(f"[1.0] {FAULT}\n", paths=["/no/such/file"])
    assert code == 2
    assert len(out.splitlines()) == 1
    assert "corral scan: /no/such/file: cannot be read: No such file or directory" in err


def test_gzip_is_unpacked(events):
    assert [event["code"] for event in events(gzip.compress(f"[1.0] {LOST}\n".encode()))] == ["xid:79"]


def test_broken_gzip_gives_what_came_before(run):
    packed = gzip.compress("".join(f"[{second}.0] {FAULT}\n" for second in range(9000)).encode())
    code, out, err = run(packed[: len(packed) // 2])
    assert code == 2
    assert out
    assert "cannot be read" in err


def test_standard_input_is_a_dash(run, monkeypatch):
    class Input:
        buffer = io.BufferedReader(io.BytesIO(f"[1.0] {LOST}\n".encode()))

    monkeypatch.setattr("sys.stdin", Input)
    code, out, err = run(paths=["-"])
    assert code == 1
    assert "xid:79" in out
    assert "-: 1 lines, 1 parsed" in err


def test_line_that_claims_to_be_an_xid_is_counted(run):
    code, out, err = run("NVRM: Xid error: xyz, invalid data\n")
    assert (code, out) == (0, "")
    assert "1 lines, 0 parsed, 1 like an Xid that could not be parsed" in err


def test_journal_json(events):
    entry = {
        "MESSAGE": FAULT,
        "__REALTIME_TIMESTAMP": "1700000000250000",
        "_SOURCE_MONOTONIC_TIMESTAMP": "123456789",
        "_TRANSPORT": "kernel",
        "_HOSTNAME": "node-b",
    }
    bytes_entry = entry | {"MESSAGE": list(LOST.encode())}
    other = entry | {"_TRANSPORT": "syslog"}
    first, second = events("\n".join(map(json.dumps, (entry, other, bytes_entry))) + "\n{broken\n")
    assert (first["code"], first["node"], first["kernel_s"]) == ("xid:31", "node-b", 123.456789)
    assert first["at"] == "2023-11-14T22:13:20.250000Z"
    assert first["evidence"][0]["source"] == "journal"
    assert second["code"] == "xid:79"


def test_the_boots_of_a_journal_are_kept_apart(events):
    entry = {"MESSAGE": "NVRM: Xid (PCI:0000:0b:00): 119, GSP", "_TRANSPORT": "kernel", "_HOSTNAME": "n1"}
    stamps = [{"__REALTIME_TIMESTAMP": f"173140200{n}000000", "_BOOT_ID": boot} for n, boot in enumerate("aab")]
    found = events("\n".join(json.dumps(entry | stamp) for stamp in stamps))
    assert [(event["boot_id"], event["count"]) for event in found] == [("a", 2), ("b", 1)]


def test_journal_json_gives_parse_objects(run):
    entry = {"MESSAGE": FAULT, "__REALTIME_TIMESTAMP": "1700000000250000", "_HOSTNAME": "node-b"}
    _, out, _ = run(json.dumps(entry) + "\n", mode="parse")
    prefix = {"kind": "syslog_iso", "iso": "2023-11-14T22:13:20.250000Z", "host": "node-b"}
    assert json.loads(out)["prefix"] == prefix


def test_repeats_within_a_minute_are_one_event_with_their_count(events):
    lines = [f"[{second}.5] {FAULT}" for second in (1, 2, 3, 100)]
    assert [event["count"] for event in events("\n".join(lines))] == [3, 1]


def test_repeats_of_two_files_are_not_folded(events):
    assert len(events(f"[1.0] {FAULT}\n", f"[1.0] {FAULT}\n")) == 2


def test_nodes_of_one_log_are_kept_apart(events):
    lines = [f"2026-06-01T12:00:0{n}Z {host} kernel: {FAULT}" for n, host in enumerate("abab")]
    assert [(event["node"], event["count"]) for event in events("\n".join(lines))] == [("a", 2), ("b", 2)]


def test_event_without_absolute_time_has_none(events):
    (event,) = events(f"[12.5] {LOST}\n")
    assert (event["at"], event["first_at"], event["last_at"]) == (None, None, None)
    assert event["kernel_s"] == 12.5


def test_boot_time_makes_uptime_absolute(events):
    (event,) = events(f"[12.5] {LOST}\n", boot_time=1700000000.0)
    assert event["at"] == "2023-11-14T22:13:32.500000Z"


@pytest.mark.parametrize(
    ("stamp", "tz", "at"),
    [
        ("Nov 30 11:00:00", None, "2026-11-30T11:00:00.000000Z"),  # less than a day ahead
        ("Nov 30 13:00:00", None, "2025-11-30T13:00:00.000000Z"),
        ("Dec 31 23:59:59", None, "2025-12-31T23:59:59.000000Z"),
        ("Jan 13 22:02:13", None, "2026-01-13T22:02:13.000000Z"),
        ("Feb 29 01:00:00", None, "2024-02-29T01:00:00.000000Z"),
        ("Jan 13 22:02:13", "Europe/Berlin", "2026-01-13T21:02:13.000000Z"),
        ("Jan 13 22:02:13", "-05:30", "2026-01-14T03:32:13.000000Z"),
        ("kwi 15 07:56:59", None, "2026-04-15T07:56:59.000000Z"),
        ("jan. 29 20:50:17.250000", None, "2026-01-29T20:50:17.250000Z"),
        ("Xyz 29 20:50:17", None, None),
        ("Feb 31 20:50:17", None, None),
    ],
)
def test_stamp_without_a_year(events, stamp, tz, at):
    (event,) = events(f"{stamp} host kernel: {LOST}\n", tz=tz)
    assert event["at"] == at


def test_year_changes_within_a_log(events):
    now = datetime(2027, 1, 2, tzinfo=UTC).timestamp()
    lines = [f"Dec 31 23:59:00 h kernel: {FAULT}", f"Jan  1 00:30:00 h kernel: {FAULT}"]
    assert [event["at"][:10] for event in events("\n".join(lines), now=now)] == ["2026-12-31", "2027-01-01"]


@pytest.mark.parametrize(
    ("prefix", "at"),
    [
        ("[Sun Aug 25 20:10:45 2024] ", "2024-08-25T18:10:45.000000Z"),
        ("kern  :warn  : 2025-01-21T04:41:44,287197+00:00 ", "2025-01-21T04:41:44.287197Z"),
        ("192.0.2.10: kern: warning: [2026-04-22T21:27:51.291660856Z]: ", "2026-04-22T21:27:51.291660Z"),
        ("Fri 2024-08-30 11:43:09 UTC n kernel: ", "2024-08-30T11:43:09.000000Z"),
        ("2026-06-01T15:55:06 n kernel: ", "2026-06-01T13:55:06.000000Z"),
        ("[  +0.000844] ", None),
        ("", None),
    ],
)
def test_stamps_of_other_forms(events, prefix, at):
    (event,) = events(f"{prefix}{LOST}\n", tz="Europe/Berlin")
    assert event["at"] == at


def test_unknown_zone_is_named():
    with pytest.raises(InputError, match="'Mars/Base' is not a time zone"):
        zone("Mars/Base")


@pytest.mark.parametrize("name", ["UTC", "Z", None])
def test_zone_of_utc(name):
    assert zone(name) is UTC


def test_line_without_end_takes_no_more_than_a_block(run):
    code, _, err = run(b"NVRM: Xid (" + b"x" * 3_000_000 + b"\n" + f"[1.0] {LOST}\n".encode())
    assert code == 1
    assert "2 lines, 1 parsed, 1 like an Xid" in err


def test_bytes_that_are_no_text_are_read(run):
    code, out, _ = run(bytes(range(256)) * 100 + b"\n[1.0] " + LOST.encode() + b"\n")
    assert code == 1
    assert "xid:79" in out


def test_same_input_gives_the_same_bytes(run):
    text = "\n".join(sample["text"] for sample in SAMPLES)
    assert run(text)[1] == run(text)[1]


@pytest.mark.parametrize(
    "begin", [b"\xfd7zXZ\x00\x00", b"\x28\xb5\x2f\xfd\x00", b"BZh91AY", b"LPKSHHRH", LOST.encode("utf-16")]
)
def test_a_form_that_is_not_read_is_unreadable_and_never_clean(run, begin):
    code, out, err = run(begin + bytes(100))
    assert (code, out) == (2, "")
    assert "give " in err


def test_colours_of_a_terminal_are_no_part_of_a_line(run):
    line = LOST.replace("NVRM: ", "\x1b[33mNVRM: \x1b[0m")
    code, out, _ = run(f"\x1b[32m[   12.500000] \x1b[0m{line}\n")
    event = json.loads(out)
    assert (code, event["code"], event["kernel_s"]) == (1, "xid:79", 12.5)


ENTRY = {
    "__CURSOR": "s=1;i=2", "__REALTIME_TIMESTAMP": "1796000000000000", "_SOURCE_MONOTONIC_TIMESTAMP": "12500000",
    "_TRANSPORT": "kernel", "_HOSTNAME": "n7", "SYSLOG_FACILITY": "0", "MESSAGE": LOST,
}  # fmt: skip


def in_export(entry):
    return "".join(f"{name}={value}\n" for name, value in entry.items()).encode() + b"\n"


def in_pretty(entry):
    return json.dumps(entry, indent="\t", separators=(",", " : ")).encode() + b"\n"


@pytest.mark.parametrize("form", [in_export, in_pretty])
@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_the_journals_other_forms_say_what_its_json_says(events, form, packed):
    others = ENTRY | {"_TRANSPORT": "stdout", "MESSAGE": "nothing of the kernel's"}
    text = b"".join(form(ENTRY | {"MESSAGE": f"line {n}"}) for n in range(700)) + form(others) + form(ENTRY)
    (event,) = events(packed(text))
    (same,) = events(json.dumps(ENTRY) + "\n")
    assert event == same
    assert (event["code"], event["node"], event["kernel_s"]) == ("xid:79", "n7", 12.5)


def test_a_field_of_the_export_form_that_is_no_plain_text_is_read_by_its_length(run):
    value = LOST.encode() + b"\n\xff_CONTINUED=1"
    plain = in_export({name: value for name, value in ENTRY.items() if name != "MESSAGE"})[:-1]
    blob = b"MESSAGE\n" + len(value).to_bytes(8, "little") + value + b"\n"
    code, out, _ = run(plain + b"COREDUMP\n" + (10**6).to_bytes(8, "little") + bytes(10**6) + b"\n" + blob + b"\n")
    assert (code, json.loads(out)["code"]) == (1, "xid:79")


@pytest.mark.parametrize("cut", [b"__CURSOR=s=1\nMESSAGE\n\x05", b"__CURSOR=s=1\nMESSAGE", b'{\n\t"MESSAGE" : "x'])
def test_a_journal_that_was_cut_ends_there(run, cut):
    assert run(cut)[:2] == (0, "")
