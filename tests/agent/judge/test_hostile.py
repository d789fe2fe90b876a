"""Lines that anyone can write: they cost the same however many there are, and break nothing."""

import time

from agent.judge import Judge
from tests.agent.made import NODE, record, xid
from vocab.messages import EventItem


def test_a_control_character_in_a_line_does_not_break_the_key_of_its_fold():
    judge = Judge(NODE)
    for unit in ("LTC\x1fTAG", "\x1f\x1f\x1f"):
        items = judge.observe(xid(0.0, 95, f"pid=7, name=a, Uncontained: {unit} (0x1,0x2). RST: Yes, D-RST: No"), 0.0)
        assert [item.event.code for item in items if isinstance(item, EventItem)] == ["xid:95"]


def seconds_for(count):
    judge = Judge(NODE)
    start = time.process_time()
    for number in range(count):
        place = f"{number >> 8 & 0xFFFF:04x}:{number & 0xFF:02x}:00"
        judge.observe(record(1.0, f"NVRM: Xid (PCI:{place}): 45, pid={number}, name=a, Ch {number:08x}"), 1.0)
        judge.observe(record(1.0, f"NVRM: GPU at PCI:{place}: GPU-{number:08x}"), 1.0)
    return time.process_time() - start


def test_faults_on_thousands_of_made_up_addresses_cost_the_same_each():
    seconds_for(100)
    assert seconds_for(4000) < 12 * seconds_for(1000), "twice the quadratic share: four times the lines, four the time"
