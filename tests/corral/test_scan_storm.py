"""Storms, and logs of many nodes: exact counts, and the same cost a line however many there are."""

import gzip
import io
import json
import time

from corral.scan import scan

TEXTS = 29  # as in a report of a fleet: one GPU, 29 distinct lines, for hours


def storm(count, texts=TEXTS, nodes=1):
    for number in range(count):
        kind = number % texts
        yield (
            f"2026-03-01T10:{number // 6000:02d}:{number // 100 % 60:02d}.{number % 100:02d}0000+00:00 "
            f"node{number % nodes} kernel: NVRM: Xid (PCI:0000:b2:00): 95, pid={100 + kind}, name=app, "
            f"Uncontained: LTC TAG (0x{kind:x}, 0xb). RST: Yes, D-RST: No"
        )


def scanned(path):
    out = io.StringIO()
    scan([str(path)], "json", None, 1.8e9, None, out, io.StringIO())
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_storm_is_counted_exactly(tmp_path):
    path = tmp_path / "storm.gz"
    path.write_bytes(gzip.compress("\n".join(storm(3000)).encode()))
    events = scanned(path)
    assert len(events) == TEXTS
    assert sum(event["count"] for event in events) == 3000
    assert max(len(event["evidence"]) for event in events) <= 20


def test_storm_of_a_thousand_processes_stays_a_few_events_with_the_exact_count(tmp_path):
    path = tmp_path / "storm"
    path.write_text("\n".join(storm(1000, texts=1000)))
    events = scanned(path)
    assert sum(event["count"] for event in events) == 1000
    assert len(events) <= 32
    assert any("storm" in event["flags"] for event in events)


def test_nodes_are_judged_apart_though_their_lines_are_the_same(tmp_path):
    path = tmp_path / "central"
    line = next(iter(storm(1)))
    path.write_text("\n".join([line, line.replace("node0", "node1")]))
    assert [event["node"] for event in scanned(path)] == ["node0", "node1"]


def seconds_for(path, count, **shape):
    path.write_text("\n".join(storm(count, **shape)))
    start = time.process_time()
    scanned(path)
    return time.process_time() - start


def test_cost_of_a_line_does_not_grow_with_the_nodes_of_the_log(tmp_path):
    seconds_for(tmp_path / "warm", 100)
    few, many = (seconds_for(tmp_path / "log", 1500, nodes=nodes) for nodes in (15, 750))
    assert many < 6 * few, "a judge a node costs something; a look at all of them at every line would cost fifty times"


def test_a_stamp_beyond_the_calendar_is_its_end(tmp_path):
    path, out = tmp_path / "log", io.StringIO()
    path.write_text("[999999999999.000000] NVRM: Xid (PCI:0000:b2:00): 79, GPU has fallen off the bus.")
    assert scan([str(path)], "json", None, 1.8e9, 1.7e9, out, io.StringIO()) == 1
    assert json.loads(out.getvalue())["at"].startswith("9999-12-31")
