"""``corral scan`` on kernel logs that other tools have wrapped, and on what a crash leaves of one."""

import io
import json

import pytest

from corral.scan import scan

NOW = 1_790_000_000.0  # September 2026
LOST = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
AT = "2026-05-01T10:00:00.123456Z"
ENTRY = {"__REALTIME_TIMESTAMP": "1777629600123456", "_HOSTNAME": "n7", "_TRANSPORT": "kernel", "MESSAGE": LOST}


@pytest.fixture
def events(tmp_path):
    """The events of a text."""

    def seen(text):
        file = tmp_path / "a.log"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        out = io.StringIO()
        scan([str(file)], "json", None, NOW, None, out, io.StringIO())
        return [json.loads(line) for line in out.getvalue().splitlines()]

    return seen


def docker(log, time="2026-05-01T10:00:00.123456789Z"):
    return json.dumps({"log": log + "\n", "stream": "stdout", "time": time}, separators=(",", ":"))


@pytest.mark.parametrize(
    ("line", "node", "at"),
    [
        (docker(LOST), "unknown", AT),
        (docker(f"[   41.200000] {LOST}"), "unknown", AT),
        (docker(f"May  1 09:59:58 n1 kernel: {LOST}"), "n1", "2026-05-01T09:59:58.000000Z"),
        (f"2026-05-01T10:00:00.123456789Z stdout F {LOST}", "unknown", AT),
        (f"2026-05-01T12:00:00.123456789+02:00 stderr F [  41.2] {LOST}", "unknown", AT),
        (f"[pod/watch-x7/dmesg] 2026-05-01T10:00:00.123456Z stdout F {LOST}", "unknown", AT),
        (f"[pod/watch-x7/dmesg] [  41.2] {LOST}", "unknown", None),
        (f"1234:[   41.200000] {LOST}", "unknown", None),
        (f"/var/log/kern.log.2.gz:May  1 10:00:00 n1 kernel: [123.4] {LOST}", "n1", "2026-05-01T10:00:00.000000Z"),
        (f"kern.log:77:May  1 10:00:00 n1 kernel: {LOST}", "n1", "2026-05-01T10:00:00.000000Z"),
        (f"gpu-17: [   41.200000] {LOST}", "gpu-17", None),
        (json.dumps(ENTRY | {"__REALTIME_TIMESTAMP": 1777629600123456}), "n7", AT),
        ("\x1e" + json.dumps(ENTRY), "n7", AT),
        ("data: " + json.dumps(ENTRY) + "\n", "n7", AT),
    ],
)
def test_what_a_tool_puts_around_a_line_is_taken_off(events, line, node, at):
    (event,) = events(line + "\n")
    assert (event["code"], event["pci"], event["node"], event["at"]) == ("xid:79", "0000:3b:00", node, at)


@pytest.mark.parametrize(
    "line",
    [
        f"watcher: found {LOST}",
        f"2026-05-01T10:00:00.123456789Z stdout F level=info msg=seen line={LOST!r}",
        docker(f"level=info msg=seen line={LOST!r}"),
        f"/var/log/syslog:May  1 10:00:00 n1 sudo: root : COMMAND=grep {LOST}",
        json.dumps({"level": "info", "msg": LOST}),
    ],
)
def test_a_program_that_quotes_a_line_has_no_fault(events, line):
    assert events(line + "\n") == []


@pytest.mark.parametrize(("stamp", "at"), [("   41.200000", None), ('"2026-05-01T10:00:00,123456+00:00"', AT)])
def test_dmesg_in_json_is_read_like_dmesg(events, stamp, at):
    entry = '      {\n         "pri": 4,\n         "time": %s,\n         "msg": %s\n      }'
    both = ",".join(entry % (stamp, json.dumps(text)) for text in ('usb 1-1: "new" device', LOST))
    (event,) = events('{\n   "dmesg": [\n' + both + "\n   ]\n}\n")
    assert (event["code"], event["at"], event["kernel_s"]) == ("xid:79", at, None if at else 41.2)


@pytest.mark.parametrize("before", [b"\0" * 700, b"\xef\xbb\xbf"])
def test_what_a_crash_or_an_editor_leaves_before_a_line_hides_nothing(events, before):
    (event,) = events(before + f"May  1 10:00:00 n1 kernel: {LOST}\n".encode())
    assert (event["code"], event["node"]) == ("xid:79", "n1")


def test_lines_of_one_record_that_journalctl_has_indented_are_of_its_node(events):
    head = "May  1 10:00:00 n1 kernel: "
    lines = (
        "NVRM: The NVIDIA GPU 0000:3b:00.0",
        "NVRM: (PCI ID: 10de:2330) installed in this system has",
        "NVRM: fallen off the bus and is not responding to commands.",
    )
    (event,) = events(head + ("\n" + " " * len(head)).join(lines) + "\n")
    assert (event["node"], event["pci"], event["count"]) == ("n1", "0000:3b:00", 1)


def test_what_firmware_reports_in_several_lines_is_one_event(events):
    lines = (
        "Hardware error from APEI Generic Hardware Error Source: 1",
        "event severity: fatal",
        "  section_type: PCIe error",
        "  device_id: 0000:3b:00.0",
    )
    (event,) = events("".join(f"May  1 10:00:00 n1 kernel: {{1}}[Hardware Error]: {line}\n" for line in lines))
    assert (event["code"], event["node"], event["pci"], event["count"]) == ("aer", "n1", "0000:3b:00", 1)


def test_a_line_that_the_logger_says_came_again_counts_as_often(events):
    fault = "NVRM: Xid (PCI:0000:3b:00): 43, pid=7, name=python, Ch 00000008"
    lines = f"May  1 10:00:00 n1 kernel: {fault}\nMay  1 10:00:06 n1 kernel: message repeated 3 times: [ {fault}]\n"
    (event,) = events(lines)
    assert (event["code"], event["count"], event["last_at"]) == ("xid:43", 4, "2026-05-01T10:00:06.000000Z")


def test_a_task_that_hangs_in_the_driver_is_found_by_the_trace_below_it(events):
    lines = "[  500.1] INFO: task python3:77 blocked for more than 241 seconds.\n[  500.1] Call Trace:\n"
    (event,) = events(lines + "[  500.1]  uvm_va_space_destroy+0x4c/0x60 [nvidia_uvm]\n")
    assert (event["code"], event["pid"]) == ("driver_hang", 77)


@pytest.mark.parametrize("prefix", ["[  886.48] ", "May  1 10:00:00 n1 kernel: [  886.48] ", f"{AT} n1 kernel: "])
def test_a_crash_in_the_driver_is_found_by_its_head_its_process_and_its_trace(events, prefix):
    lines = (
        "BUG: kernel NULL pointer dereference, address: 0000000000000040",
        "#PF: supervisor read access in kernel mode",
        "CPU: 3 UID: 0 PID: 77 Comm: python3 Tainted: P           OE      6.12.0",
        "RIP: 0010:uvm_release+0x25/0xe0 [nvidia_uvm]",
    )
    (event,) = events("".join(f"{prefix}{line}\n" for line in lines))
    assert (event["code"], event["pid"], event["recovery"]) == ("driver_hang", 77, "reboot_node")
