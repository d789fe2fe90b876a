"""Prefixes: what stands in front of the kernel's text in each tool's form."""

from datetime import UTC, datetime

import pytest

from agent.kernel.prefix import split
from agent.kernel.stamps import Stamps

TEXT = "NVRM: Xid (PCI:0000:3b:00): 31, pid=100, name=python, Ch 00000002"


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("", {"kind": "none"}),
        ("[...] ", {"kind": "elided"}),
        ("[12345.678901] ", {"kind": "dmesg_uptime", "uptime_s": 12345.678901}),
        ("[    0.000000] ", {"kind": "dmesg_uptime", "uptime_s": 0.0}),
        ("[\x1f12.5] ", {"kind": "dmesg_uptime", "uptime_s": 12.5}),
        ("[123] ", {"kind": "dmesg_uptime", "uptime_s": 123.0}),
        ("[  130.456250][ T1946] ", {"kind": "dmesg_uptime_caller", "uptime_s": 130.45625, "caller": "T1946"}),
        ("[  130.456250] [    C3] ", {"kind": "dmesg_uptime_caller", "uptime_s": 130.45625, "caller": "C3"}),
        (
            "[Fri Aug 30 11:43:09 2024] ",
            {"kind": "dmesg_ctime", "text": "Fri Aug 30 11:43:09 2024", "tz": "host local"},
        ),
        ("[  +0.000844] ", {"kind": "dmesg_delta", "delta_s": 0.000844}),
        ("[   38.178720 <    0.004478>] ", {"kind": "dmesg_delta", "uptime_s": 38.17872, "delta_s": 0.004478}),
        ("[Aug30 11:43] ", {"kind": "dmesg_delta", "text": "Aug30 11:43"}),
        (
            "kern  :err   : 2025-01-25T10:34:54,859532+00:00 ",
            {"kind": "dmesg_decode_iso", "facility": "kern", "level": "err", "iso": "2025-01-25T10:34:54.859532+00:00"},
        ),
        (
            "<3>1 2025-01-25T10:34:54Z node-a kernel - - - ",
            {"kind": "syslog_iso", "iso": "2025-01-25T10:34:54Z", "host": "node-a", "priority": 3},
        ),
        (
            "Jan 25 10:34:54 node-a kern.err kernel: [   12.500000] ",
            {"kind": "syslog_uptime", "text": "Jan 25 10:34:54", "host": "node-a", "uptime_s": 12.5},
        ),
        ("2025-01-25 10:34:54 node-a kernel: ", {"kind": "syslog_iso", "iso": "2025-01-25 10:34:54", "host": "node-a"}),
        ("2025-01-25T10:34:54,859532+00:00 ", {"kind": "dmesg_decode_iso", "iso": "2025-01-25T10:34:54.859532+00:00"}),
        (
            "kern  :warn  : [   12.500000] ",
            {"kind": "dmesg_uptime", "uptime_s": 12.5, "facility": "kern", "level": "warn"},
        ),
        ("3,2211,12345678901,-;", {"kind": "kmsg_raw", "uptime_s": 12345.678901, "seq": 2211, "priority": 3}),
        (
            "6,1,5000000,-,caller=T77;",
            {"kind": "kmsg_raw", "uptime_s": 5.0, "seq": 1, "priority": 6, "caller": "T77"},
        ),
        ("<4>[   54.661257] ", {"kind": "pstore", "uptime_s": 54.661257, "priority": 4}),
        ("Sep 19 13:28:09 node-a kernel: ", {"kind": "syslog_short", "text": "Sep 19 13:28:09", "host": "node-a"}),
        ("Sep 19 13:28:09.123456 a kernel: ", {"kind": "syslog_short", "text": "Sep 19 13:28:09.123456", "host": "a"}),
        ("jan. 29 20:50:17 n kernel: ", {"kind": "syslog_short", "text": "jan. 29 20:50:17", "host": "n"}),
        (
            "Sep 19 13:28:09 node-a kernel: [12345.678901] ",
            {"kind": "syslog_uptime", "text": "Sep 19 13:28:09", "host": "node-a", "uptime_s": 12345.678901},
        ),
        ("Sep 19 13:28:09 ", {"kind": "syslog_short_cut", "text": "Sep 19 13:28:09"}),
        ("Sep 19 13:28:09 kernel: ", {"kind": "syslog_short_cut", "text": "Sep 19 13:28:09"}),
        (
            "2026-06-01T15:55:06.218036+03:00 node-a kernel: ",
            {"kind": "syslog_iso", "iso": "2026-06-01T15:55:06.218036+03:00", "host": "node-a"},
        ),
        (
            "Fri 2024-08-30 11:43:09 UTC n kernel: ",
            {"kind": "syslog_short", "text": "Fri 2024-08-30 11:43:09 UTC", "host": "n"},
        ),
        (
            "1717254906.218036 n kernel: ",
            {"kind": "syslog_iso", "iso": "2024-06-01T15:15:06.218036+00:00", "host": "n"},
        ),
        ("[  123.500000] n kernel: ", {"kind": "dmesg_uptime", "uptime_s": 123.5, "host": "n"}),
        ("kernel: ", {"kind": "kernel_tag"}),
        ("kernel: [16450076.435595] ", {"kind": "kernel_tag_uptime", "uptime_s": 16450076.435595}),
        ("kernel:[405108.698255] ", {"kind": "kernel_tag_uptime", "uptime_s": 405108.698255}),
        (" kernel:[405108.698255] ", {"kind": "kernel_tag_uptime", "uptime_s": 405108.698255}),
        ("11月 15 14:15:47 n kernel: ", {"kind": "syslog_short", "text": "11月 15 14:15:47", "host": "n"}),
        ("[三 1月 14 10:00:00 2026] ", {"kind": "dmesg_ctime", "text": "三 1月 14 10:00:00 2026", "tz": "host local"}),
        ("Jan 14 10:00:00 198.51.100.7 ", {"kind": "syslog_short", "text": "Jan 14 10:00:00", "host": "198.51.100.7"}),
        (
            "2025-01-14 10:00:00.000 n [12345.5] ",
            {"kind": "syslog_iso", "iso": "2025-01-14 10:00:00.000", "host": "n", "uptime_s": 12345.5},
        ),
        (
            "2026-05-01T10:00:00.000Z May  1 09:59:58 n kernel: [12.5] ",
            {"kind": "syslog_iso", "iso": "2026-05-01T10:00:00.000Z", "host": "n", "uptime_s": 12.5},
        ),
        (
            "[   41.200000] usb 1-1: new dev[   41.200001] ",
            {"kind": "dmesg_uptime", "uptime_s": 41.200001},
        ),
        (
            "192.0.2.10: kern: warning: [2026-04-22T21:27:51.291660856Z]: ",
            {"kind": "talos", "level": "warning", "iso": "2026-04-22T21:27:51.291660856Z"},
        ),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_prefix_is_split_from_the_text(prefix, expected):
    found = split(prefix + TEXT)
    assert found is not None
    shown = {name: getattr(found[0], name) for name in found[0].__struct_fields__}
    assert {name: value for name, value in shown.items() if value is not None} == expected
    assert found[1] == TEXT


@pytest.mark.parametrize(
    "line",
    [
        "Sep 19 13:28:09 node-a watcher[77]: saw NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
        "2026-06-01T15:55:06.218036+03:00 node-a sudo: root : COMMAND=grep NVRM: Xid /var/log/kern.log",
        "Sep 19 13:28:09 node-a watcher[77]: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
        "2026-06-01T15:55:06.218036Z INFO NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
        "Sep 19 13:28:09 watcher: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
    ],
)
def test_what_another_program_logged_is_not_the_kernel(line):
    assert split(line) is None


@pytest.mark.parametrize("inner", ["", "[  123.400000] "])
def test_what_the_logger_says_was_repeated_is_that_text_so_many_times(inner):
    found = split(f"Jan 14 10:00:06 n kernel: message repeated 3 times: [ {inner}{TEXT}]")
    assert found is not None
    assert (found[0].times, found[0].host, found[1]) == (3, "n", TEXT)


def test_the_log_files_of_fabric_manager_and_imex_have_stamps_with_the_year():
    prefix, text = split("[Mar  4 2025 07:10:11] [ERROR] [tid 77] x")
    assert (prefix.kind, text) == ("fabric_manager", "[ERROR] [tid 77] x")
    assert Stamps(UTC, 1_790_000_000.0, None).at(prefix) == datetime(2025, 3, 4, 7, 10, 11, tzinfo=UTC).timestamp()
