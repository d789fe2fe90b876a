import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agent.segment import SUFFIX, frame, read
from agent.spool import Spool
from vocab.errors import SpoolFull
from vocab.events import Cleared, Event, Recovery, Scope, Severity, Source
from vocab.messages import ClearedItem, EventItem, FenceItem


def item(name, rev=1, severity=Severity.ERROR, text=""):
    return EventItem(
        Event(
            id=name, rev=rev, at=None, node="n1", code="xid:79", severity=severity, recovery=Recovery.NONE,
            scope=Scope.GPU, source=Source.KERNEL, text=text,
        )
    )  # fmt: skip


def held(spool):
    return [(record.position, record.item.event.id) for record in spool.pending(10_000, 2**30)]


def test_positions_rise_by_one_and_go_on_after_a_restart(tmp_path):
    spool = Spool(tmp_path)
    spool.append([item("a"), item("b")])
    spool.close()
    again = Spool(tmp_path)
    again.append([item("c")])
    again.sync()
    assert held(again) == [(1, "a"), (2, "b"), (3, "c")]


def test_positions_go_on_even_if_all_was_confirmed(tmp_path):
    spool = Spool(tmp_path)
    spool.append([item("a")])
    spool.sync()
    spool.ack(1)
    spool.close()
    again = Spool(tmp_path)
    again.append([item("b")])
    again.sync()
    assert held(again) == [(2, "b")]


def test_nothing_is_given_out_before_it_is_on_disk(tmp_path):
    spool = Spool(tmp_path)
    spool.append([item("a")])
    assert spool.pending() == ()
    assert spool.dirty
    spool.sync()
    assert held(spool) == [(1, "a")]
    assert not spool.dirty


async def test_flush_puts_on_disk_what_was_there_when_it_began(tmp_path):
    spool = Spool(tmp_path)
    spool.append([item("a")])
    await spool.flush()
    assert held(spool) == [(1, "a")]


def test_the_newest_state_comes_back_and_none_keeps_the_last(tmp_path):
    spool = Spool(tmp_path)
    spool.append([], b"first")
    spool.append([item("a")], b"second")
    spool.append([item("b")])
    spool.close()
    assert Spool(tmp_path).state == b"second"


def test_state_survives_that_all_items_are_confirmed_and_their_segments_deleted(tmp_path):
    spool = Spool(tmp_path)
    for n in range(40):
        spool.append([item(f"e{n}", text="x" * 60_000)], f"state {n}".encode())
    spool.sync()
    spool.ack(40)
    assert len(list(tmp_path.glob(f"*{SUFFIX}"))) == 1
    spool.close()
    again = Spool(tmp_path)
    assert (again.state, again.depth, again.last) == (b"state 39", 0, 40)


def test_a_torn_last_record_is_cut_off_and_the_rest_is_kept(tmp_path):
    spool = Spool(tmp_path)
    spool.append([item("a")], b"one")
    spool.append([item("b")], b"two")
    spool.close()
    (path,) = tmp_path.glob(f"*{SUFFIX}")
    path.write_bytes(path.read_bytes()[:-3])
    again = Spool(tmp_path)
    assert (held(again), again.state) == ([(1, "a")], b"one")
    again.append([item("c")])
    again.close()
    assert held(Spool(tmp_path)) == [(1, "a"), (2, "c")]


def test_a_batch_is_limited_by_number_and_size(tmp_path):
    spool = Spool(tmp_path)
    spool.append([item(f"e{n}", text="x" * 1000) for n in range(10)])
    spool.sync()
    assert len(spool.pending(most=3)) == 3
    assert len(spool.pending(most_bytes=1)) == 1
    assert len(spool.pending(most_bytes=3000)) == 2


def test_an_acknowledgement_of_what_was_never_sent_deletes_nothing(tmp_path):
    spool = Spool(tmp_path)
    spool.append([item("a")])
    spool.ack(1000)
    spool.sync()
    assert held(spool) == [(1, "a")]


def test_over_its_limit_revisions_fold_before_anything_is_dropped(tmp_path):
    spool = Spool(tmp_path, limit_bytes=64_000)
    for rev in range(1, 40):
        spool.append([item("a", rev, text="x" * 4000)])
    spool.sync()
    assert spool.dropped == 0
    assert spool.pending(10_000, 2**30)[-1].item.event.rev == 39


def test_over_its_limit_the_least_severe_and_oldest_go_first_and_are_counted(tmp_path):
    spool = Spool(tmp_path, limit_bytes=64_000)
    severities = [Severity.CRITICAL, Severity.INFO, Severity.WARNING, Severity.INFO]
    for n in range(40):
        spool.append([item(f"{severities[n % 4].value}{n}", severity=severities[n % 4], text="x" * 2000)])
    spool.sync()
    kept = {name.rstrip("0123456789") for _, name in held(spool)}
    criticals = [name for _, name in held(spool) if name.startswith("critical")]
    assert "critical" in kept
    assert len(criticals) == 10
    assert spool.dropped == 40 - spool.depth > 0
    spool.close()
    assert Spool(tmp_path, limit_bytes=64_000).dropped == spool.dropped


def test_the_disk_stays_within_its_limit_while_the_controller_is_gone(tmp_path):
    spool = Spool(tmp_path, limit_bytes=64_000)
    for n in range(600):
        spool.append([], b"s" * 10_000)
        spool.append([item(f"e{n}", text="x" * 300)])
    assert spool.size_bytes < 64_000 + 2 * 2**20


def test_an_item_that_the_controller_refuses_for_good_is_skipped_and_counted(tmp_path):
    spool = Spool(tmp_path)
    spool.append([item("a"), item("b")])
    spool.sync()
    spool.skip(1)
    assert (held(spool), spool.dropped) == ([(2, "b")], 1)


def test_a_disk_that_takes_no_more_is_an_error_that_names_it_and_the_item_is_still_sent(tmp_path):
    spool = Spool(tmp_path / "spool")

    def full(_):
        raise OSError(28, "No space left on device")

    spool._segments[-1].append = full
    with pytest.raises(SpoolFull, match="free some space"):
        spool.append([item("a")])
    spool.sync()
    assert held(spool) == [(1, "a")]


def test_fences_and_cleared_signals_are_kept_as_well(tmp_path):
    items = [
        FenceItem(at=1.0, node="n1", gpu="g", op="placed", why="because"),
        ClearedItem(Cleared(at="", node="n1", boot_id=None, gpu="g", code="gpu_lost", by="reboot")),
    ]
    spool = Spool(tmp_path)
    spool.append(items)
    spool.close()
    assert [record.item for record in Spool(tmp_path).pending()] == items


class Crashes(RuleBasedStateMachine):
    """Whatever happens, and wherever the process or the machine dies: what was synced is there, in order, once.

    A crash keeps the bytes that were synced and any part of those that were not. A segment that ended was
    synced whole when it ended.
    """

    @initialize()
    def start(self):
        self.folder = Path(tempfile.mkdtemp(prefix="spool"))
        self.spool = Spool(self.folder)
        self.sent = {}  # position -> name, of all that was appended and may still be there
        self.durable = 0  # the highest position that no crash can take
        self.acked = 0
        self.after = {0: None}  # position -> the state that came with it
        self.floor = self.segment().size  # bytes of the last segment that no crash can take
        self.count = 0

    def segment(self):
        return self.spool._segments[-1]

    @rule(number=st.integers(1, 3), size=st.sampled_from([0, 50, 300_000]), state=st.booleans())
    def append(self, number, size, state):
        before, last = self.segment().number, self.spool.last
        items = [item(f"e{self.count + n}", text="x" * size) for n in range(number)]
        self.sent |= {last + 1 + n: f"e{self.count + n}" for n in range(number)}
        self.count += number + 1
        new = f"state {self.count}".encode() if state else None
        self.spool.append(items, new)
        if self.segment().number != before:
            self.durable, self.floor = last, self.head_size()
        self.after[self.spool.last] = new or self.after[last]

    @rule()
    def sync(self):
        self.spool.sync()
        self.durable, self.floor = self.spool.last, self.segment().size

    @rule(back=st.integers(0, 2))
    def ack(self, back):
        position = max(0, self.spool._synced - back)
        self.spool.ack(position)
        self.acked = max(self.acked, position)

    @rule(keep=st.floats(0, 1))
    def crash(self, keep):
        segment = self.segment()
        segment.close()
        with segment.path.open("r+b") as file:
            file.truncate(self.floor + int((segment.size - self.floor) * keep))
        self.spool = Spool(self.folder)
        assert self.spool.last >= self.durable
        assert self.spool.state == self.after[self.spool.last]  # the items and their state, or neither
        self.sent = {p: name for p, name in self.sent.items() if p <= self.spool.last}
        self.durable, self.floor = self.spool.last, self.segment().size

    def head_size(self):
        records, _ = read(self.segment().path.read_bytes())
        return len(frame(records[0]))

    @invariant()
    def what_is_on_disk_and_not_confirmed_is_given_out_in_order(self):
        if hasattr(self, "spool"):
            found = held(self.spool)
            confirmed = [pair for pair in found if pair[0] <= self.acked]  # an answer that a crash lost comes again
            on_disk = range(self.acked + 1, self.spool._synced + 1)
            assert found == [*confirmed, *((p, self.sent[p]) for p in on_disk)]
            assert all(self.sent[p] == name for p, name in confirmed)

    def teardown(self):
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


TestCrashes = Crashes.TestCase
TestCrashes.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)


def test_segments_that_a_crash_left_beside_their_replacement_count_no_more(tmp_path):
    spool = Spool(tmp_path)
    spool.append([item("a"), item("b")])
    spool.sync()
    (old,) = tmp_path.glob(f"*{SUFFIX}")
    kept = old.read_bytes()
    spool.skip(1)
    spool.close()
    old.write_bytes(kept)
    again = Spool(tmp_path)
    assert held(again) == [(2, "b")]
    assert not old.exists()
