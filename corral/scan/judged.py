"""One file through the judge: a judge a node, time that only goes forward, and each event once, in its last revision.

An event is given out when it can no longer grow. Between, only events of the last minute or so are held.
"""

import math
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from agent.judge import Judge
from vocab.events import Event
from vocab.messages import EventItem
from vocab.observations import KernelRecord

_RIPE_S = 75.0  # a fold is over a minute after its last repeat, and its last revision follows within ten seconds
_LOOK_S = 10.0
_REBOOT_S = 5.0  # a stamp that goes back by more belongs to another boot, or to a clock that was set
_GAP_S = 120.0  # how far time is moved then: nothing folds across

# What a record's prefix says of where it was read; all others are dmesg's.
SOURCES = {"kmsg_raw": "kmsg", "syslog_short": "syslog", "syslog_uptime": "syslog", "syslog_iso": "syslog"}


class Timeline:
    """One time for a file whose stamps are of several kinds, or missing: it never goes back."""

    def __init__(self) -> None:
        self.now = 0.0
        self._last: dict[str, float] = {}

    def move(self, at: float | None, uptime_s: float | None) -> float:
        """Time after a line with these stamps."""
        base, stamp = ("wall", at) if at is not None else ("uptime", uptime_s)
        if stamp is None:
            return self.now
        step = stamp - self._last.get(base, stamp)
        self._last[base] = stamp
        if step > 0:
            self.now += step
        elif step < -_REBOOT_S:
            self.now += _GAP_S
        return self.now


class _Node:
    """One node's judge, and its events that may still change, each with its place in the order of all.

    ``watched``: a look at it is planned.
    """

    def __init__(self, name: str) -> None:
        self.judge = Judge(name)
        self.events: dict[str, tuple[int, float, Event]] = {}
        self.watched = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing can change here until its next line."""
        return not self.events and self.judge.next_deadline() is None

    def keep(self, items: Iterable[object], now: float, place: int) -> None:
        """Take the judge's events in; a later revision stays where the first was."""
        for item in items:
            if isinstance(item, EventItem):
                first = self.events.get(item.event.id)
                self.events[item.event.id] = (first[0] if first else place, now, item.event)

    def ripe(self, now: float) -> Iterator[Event]:
        """Give out, and forget, the events that can no longer grow."""
        growing = self.judge.open_counts()
        for event_id, (_, seen, event) in list(self.events.items()):
            if now - seen > _RIPE_S and event_id not in growing:
                del self.events[event_id]
                yield event


class Judged:
    """The judges of one file's nodes. A node is looked at only while it is not idle: a log may be of thousands."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._looks: list[tuple[float, str]] = []
        self._time = Timeline()
        self._place = 0

    def take(
        self,
        line: str,
        *,
        source: str,
        node: str,
        at: float | None,
        kernel_s: float | None,
        facility: int | None,
        boot_id: str | None = None,
    ) -> Iterable[Event]:
        """Judge one line or record; gives the events that are over by now."""
        now = self._time.move(at, kernel_s)
        record = KernelRecord(
            at=math.nan if at is None else at,
            node=node,
            source=source,
            line=line,
            kernel_s=kernel_s,
            facility=facility,
        )
        kept = self._nodes.get(node) or self._nodes.setdefault(node, _Node(node))
        self._place += 1
        if boot_id is not None:
            kept.keep(kept.judge.enter(boot_id, now), now, self._place)
        if (due := kept.judge.next_deadline()) is not None and due <= now:
            kept.keep(kept.judge.tick(now), now, self._place)
        if items := kept.judge.observe(record, now):
            kept.keep(items, now, self._place)
        if not kept.watched:
            self._watch(node, kept, now)
        return self._over(now) if self._looks and self._looks[0][0] <= now else ()

    def _over(self, now: float) -> Iterator[Event]:
        while self._looks and self._looks[0][0] <= now:
            yield from self._look(heappop(self._looks)[1], now)

    def _look(self, name: str, now: float) -> Iterator[Event]:
        node = self._nodes[name]
        node.keep(node.judge.tick(now), now, self._place)
        yield from node.ripe(now)
        node.watched = False
        self._watch(name, node, now)

    def _watch(self, name: str, node: _Node, now: float) -> None:
        if not node.is_idle:
            node.watched = True
            heappush(self._looks, (now + _LOOK_S, name))

    def close(self) -> Iterator[Event]:
        """The end of the file: all events that were still held."""
        now = self._time.now
        for node in self._nodes.values():
            node.keep(node.judge.close(now), now, self._place)
        held = (entry for node in self._nodes.values() for entry in node.events.values())
        for _, _, event in sorted(held, key=_by_place):
            yield event
        self._nodes.clear()


def _by_place(entry: tuple[int, float, Event]) -> int:
    return entry[0]
