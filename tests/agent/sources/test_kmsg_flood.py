"""A storm: 100,000 records of the kernel log, read from a virtual node's log as fast as they come."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.judge import Judge
from agent.sources.kmsg import AT_ONCE, KmsgSource, VirtualKmsg
from agent.virtual import layout
from agent.virtual.state import VirtualState
from agent.virtual.view import identity_of
from vocab.clock import VirtualClock
from vocab.events import Event
from vocab.messages import EventItem
from vocab.observations import KernelRecord, NodeSeen

RECORDS = 100_000
MINUTE_S = 60.0
PORTION = layout.LOG_SLOTS // 2
MOST_GROWTH = 4096  # bytes of the judge's memory


class Flood:
    """A node whose log is flooded while it is read; ``most``: the most records that were handed out at once."""

    def __init__(self, path: Path) -> None:
        self.clock = VirtualClock(1_000.0)
        self.state = VirtualState.create(path / "virtual.state", "n1", clock=self.clock)
        self.kernel = KmsgSource("n1", VirtualKmsg(self.state), self.clock, self.state.boot_id)
        self.judge = Judge("n1", self.state.boot_id)
        self.most = 0
        self.events: dict[str, Event] = {}
        self.items = 0
        gpus = tuple(identity_of(gpu, index) for index, gpu in enumerate(self.state.gpus))
        self.take(NodeSeen(at=1_000.0, node="n1", boot_id=self.state.boot_id, driver="580.95.05", gpus=gpus))

    def take(self, seen: NodeSeen | KernelRecord) -> None:
        for item in self.judge.observe(seen, self.clock.now()):
            self.note(item)

    def note(self, item: object) -> None:
        self.items += 1
        if isinstance(item, EventItem):
            self.events[item.event.id] = item.event

    def records(self) -> Iterator[KernelRecord]:
        """All that can be read now."""
        while found := self.kernel.drain():
            self.most = max(self.most, len(found))
            yield from found

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for item in self.judge.tick(self.clock.now()):
            self.note(item)


@pytest.fixture
def flood(tmp_path: Path) -> Flood:
    return Flood(tmp_path)


def counted(flood: Flood, code: str) -> int:
    return sum(event.count for event in flood.events.values() if event.code == code)


def test_a_storm_is_counted_to_the_last_record_in_bounded_memory(flood: Flood) -> None:
    address = identity_of(flood.state.gpus[0], 0).pci
    line = f"NVRM: Xid (PCI:{address}): 31, pid=77, name=python, Ch 00000010, intr 00000000. MMU Fault: ENGINE GRAPHICS"
    for _ in flood.records():
        pass
    sizes = []
    for first in range(0, RECORDS, PORTION):
        portion = min(PORTION, RECORDS - first)
        for _ in range(portion):
            flood.state.log(line)
        for record in flood.records():
            flood.take(record)
        flood.pass_time(MINUTE_S * portion / RECORDS)
        sizes.append(len(flood.judge.snapshot()))
    for item in flood.judge.close(flood.clock.now()):
        flood.note(item)
    assert counted(flood, "xid:31") == RECORDS
    assert not counted(flood, "kernel_records_lost")
    assert flood.most <= AT_ONCE
    assert flood.items < 50, "a revision goes out each 10 s, not each record"
    assert max(sizes) < sizes[0] + MOST_GROWTH, "what is remembered does not grow with the storm"


def test_records_that_were_overwritten_in_a_storm_are_counted_as_lost(flood: Flood) -> None:
    for record in flood.records():
        flood.take(record)
    for number in range(layout.LOG_SLOTS + 123):
        flood.state.log(f"flood {number}")
    for record in flood.records():
        flood.take(record)
    (lost,) = [event for event in flood.events.values() if event.code == "kernel_records_lost"]
    assert lost.fields["lost"] == 123
