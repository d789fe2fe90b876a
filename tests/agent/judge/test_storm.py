"""Storms: lines that only repeat are counted at once and judged together, and nobody can tell the difference."""

from itertools import pairwise

from msgspec.structs import replace

from agent.judge import Judge
from vocab.messages import EventItem
from vocab.observations import KernelRecord, NodeSeen

TEXTS = 5
A_SECOND = 50
BOOTS = ((999.0, "b1"), (1030.0, "b2"))


def lines(count, start=0, source="kmsg"):
    for number in range(start, start + count):
        stamp, kind = 1000 + number / A_SECOND, number % TEXTS
        text = f"NVRM: Xid (PCI:0000:b2:00): 95, pid={100 + kind}, name=app, Uncontained: LTC TAG (0x{kind:x}, 0xb)."
        yield KernelRecord(at=stamp, node="n", source=source, line=text, seq=number, kernel_s=stamp, facility=0)


def judged(judge, records):
    """Events as revisions, each with the time at which it was given out."""
    items = []
    for record in records:
        due = judge.next_deadline()
        if due is not None and due <= record.at:
            items += [(record.at, item.event) for item in judge.tick(record.at) if isinstance(item, EventItem)]
        items += [(record.at, item.event) for item in judge.observe(record, record.at) if isinstance(item, EventItem)]
    return items


def last_of(items):
    return {event.id: event for _, event in items}


def ended(judge, items, at):
    return last_of([*items, *((at, item.event) for item in judge.close(at) if isinstance(item, EventItem))]).values()


def test_every_line_of_a_storm_is_counted_and_the_last_time_is_right():
    judge = Judge("n")
    events = ended(judge, judged(judge, lines(5000)), 1101.0)
    assert [event.count for event in events] == [1000] * TEXTS
    assert max(event.last_at for event in events) == "1970-01-01T00:18:19.980000Z"
    assert all(event.seq < TEXTS for event in events), "the first line names the event"


def test_revisions_of_a_storm_go_out_every_ten_seconds():
    judge = Judge("n")
    items = judged(judge, lines(5000))
    for event_id in last_of(items):
        times = [at for at, event in items if event.id == event_id]
        gaps = [later - at for at, later in pairwise(times)]
        assert all(9.99 <= gap <= 10.5 for gap in gaps)
        assert len(gaps) == 9


def test_storm_is_told_as_exactly_when_readings_of_the_host_come_between():
    plain, disturbed = Judge("n"), Judge("n")
    alone = ended(plain, judged(plain, lines(3000)), 1100.0)
    items = []
    for record in lines(3000):
        items += judged(disturbed, [record])
        if record.seq % 7 == 0:
            disturbed.tick(record.at)
    assert [(e.id, e.count, e.last_at) for e in ended(disturbed, items, 1100.0)] == [
        (e.id, e.count, e.last_at) for e in alone
    ]


def test_agent_that_restarts_in_a_storm_loses_no_count():
    judge = Judge("n")
    items = judged(judge, lines(2003))
    again = Judge.restore(judge.snapshot())
    assert again.position == judge.position == 2002
    items += judged(again, lines(1000, start=2003))
    assert sum(event.count for event in ended(again, items, 1100.0)) == 3003


def test_another_reader_of_the_same_storm_counts_nothing_twice():
    judge = Judge("n")
    items = []
    for one, other in zip(lines(2000), lines(2000, source="journal"), strict=True):
        items += judged(judge, [one, replace(other, seq=None)])
    assert sum(event.count for event in ended(judge, items, 1100.0)) == 2000


def test_records_lost_in_a_storm_are_told():
    judge = Judge("n")
    items = judged(judge, [*lines(2000), *lines(100, start=2500)])
    lost = next(event for event in ended(judge, items, 1100.0) if event.code == "kernel_records_lost")
    assert (lost.fields["from"], lost.fields["to"]) == (2000, 2499)


def test_storm_that_goes_on_after_a_reboot_is_another_event():
    judge = Judge("n")
    first, second = (NodeSeen(at=at, node="n", boot_id=boot, driver="570", gpus=()) for at, boot in BOOTS)
    anew = [replace(record, at=record.at + 100.0) for record in lines(1)]
    items = judged(judge, [first, *lines(1000), second, *anew])
    assert sorted(event.count for event in ended(judge, items, 1200.0)) == [1, *[200] * TEXTS]


def test_cause_that_comes_into_a_storm_is_found():
    judge = Judge("n")
    text = "NVRM: Xid (PCI:0000:b2:00): 48, pid=9, name=app, An uncorrectable double bit error"
    items = judged(judge, lines(1000))
    items += judged(judge, [KernelRecord(at=1020.0, node="n", source="kmsg", line=text, seq=1000, kernel_s=1020.0)])
    items += judged(judge, lines(500, start=1001))
    events = {event.code: event for event in ended(judge, items, 1100.0)}
    assert events["xid:95"].cause == events["xid:48"].id
