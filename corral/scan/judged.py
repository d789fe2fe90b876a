"""One file through the judge: a judge a node, time that only goes forward, and each event once, in its last revision.

An event is given out when it can no longer grow. Between, only events of the last minute or so are held.
"""

import math
from collections.abc import Iterable, Iterator

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


class Judged:
    """The judges of one file's nodes, and the events that may still change."""

    def __init__(self) -> None:
        self._judges: dict[str, Judge] = {}
        self._events: dict[str, tuple[float, Event]] = {}
        self._time = Timeline()
        self._looked = 0.0

    def take(
        self, line: str, *, source: str, node: str, at: float | None, kernel_s: float | None, facility: int | None
    ) -> Iterator[Event]:
        """Judge one line or record; gives the events that are over by now."""
        now = self._time.move(at, kernel_s)
        judge = self._judges.get(node) or self._judges.setdefault(node, Judge(node))
        record = KernelRecord(
            at=math.nan if at is None else at,
            node=node,
            source=source,
            line=line,
            kernel_s=kernel_s,
            facility=facility,
        )
        if (due := judge.next_deadline()) is not None and due <= now:
            self._keep(judge.tick(now), now)
        self._keep(judge.observe(record, now), now)
        yield from self._ripe(now)

    def close(self) -> Iterator[Event]:
        """The end of the file: all events that were still held."""
        for judge in self._judges.values():
            self._keep(judge.close(self._time.now), self._time.now)
        for _, event in self._events.values():
            yield event
        self._events.clear()

    def _keep(self, items: Iterable[object], now: float) -> None:
        for item in items:
            if isinstance(item, EventItem):
                self._events[item.event.id] = (now, item.event)

    def _ripe(self, now: float) -> Iterator[Event]:
        if now - self._looked < _LOOK_S:
            return
        self._looked = now
        for judge in self._judges.values():
            self._keep(judge.tick(now), now)
        growing = {event_id for judge in self._judges.values() for event_id in judge.open_counts()}
        for event_id, (seen, event) in list(self._events.items()):
            if now - seen > _RIPE_S and event_id not in growing:
                del self._events[event_id]
                yield event
