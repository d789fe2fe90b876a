"""Nodes and GPUs as they were last heard of: how old the news is, and what silence means.

Silence is *unknown*, never a fault. A node is lost only when others say so too.
"""

from collections import deque
from statistics import median

import msgspec

from controller.core.fleet.settings import (
    EXCUSED_MOST_S,
    SILENT_GAPS,
    SILENT_LEAST_S,
    STALE_LEAST_S,
    STALE_PERIODS,
)
from vocab.messages import GpuStatus, NodeFacts
from vocab.observations import GpuIdentity

GAPS_KEPT = 16  # enough for a median that one late report does not move


class Gpu(msgspec.Struct):
    """One GPU of the inventory. ``sampled_at`` is our clock, ``status.at`` the node's."""

    identity: GpuIdentity
    node: str
    known_at: float
    period_s: float
    status: GpuStatus | None = None
    sampled_at: float | None = None
    failed_at: float = 0.0  # when it last could not be read, on our clock
    listed: bool = True  # in its node's last inventory
    watched: bool = False  # the agenda holds the moment at which it grows stale, or an earlier one

    def take(self, status: GpuStatus, now: float) -> bool:
        """Note a status; True if it changes whether the GPU answers. A repeated one proves nothing new."""
        before = self.status
        if before is not None and status.at <= before.at:
            return False
        self.status = status
        if status.error is not None:
            self.failed_at = now
            return before is None or before.error != status.error
        first = self.sampled_at is None or (before is not None and before.error is not None)
        stale = not self.is_fresh(now)
        self.sampled_at = now
        return first or stale

    @property
    def answers(self) -> bool:
        """Whether its last reading, if there was one, was one."""
        return self.status is None or self.status.error is None

    @property
    def limit_s(self) -> float:
        """How long a reading counts; endless where no sample period was promised."""
        return max(STALE_PERIODS * self.period_s, STALE_LEAST_S) if self.period_s > 0 else float("inf")

    def is_fresh(self, now: float) -> bool:
        """Whether there is a reading young enough, of a GPU that is there."""
        if not self.listed:
            return False
        if self.period_s <= 0:
            return True
        return self.sampled_at is not None and now - self.sampled_at < self.limit_s

    def is_awaited(self, now: float) -> bool:
        """Whether no reading came yet and none is overdue: too early to call it unknown."""
        return self.listed and self.sampled_at is None and now - self.known_at < self.limit_s

    def stale_at(self) -> float:
        """When it stops being fresh (or awaited) if nothing more comes."""
        return (self.known_at if self.sampled_at is None else self.sampled_at) + self.limit_s


class Node(msgspec.Struct):
    """One node. ``facts_at``, ``told_at``, ``reported_at`` and ``replicas_at`` are of this life of the controller.

    ``awaited_from``: it reported in an earlier life, so its reports are watched from the start of this one.
    ``knocked_at``: when a report of it arrived that still waits for its turn; ``excused_s``: how much of its silence
    is ours, and ``deafest_s`` the longest that we were deaf in it at one time.
    """

    name: str
    facts: NodeFacts | None = None
    facts_at: float | None = None
    told_at: float | None = None  # when facts last came
    reported_at: float | None = None
    awaited_from: float | None = None
    knocked_at: float = 0.0
    excused_s: float = 0.0
    deafest_s: float = 0.0
    replicas_at: float | None = None
    paused: bool = False
    gaps: deque[float] = msgspec.field(default_factory=lambda: deque(maxlen=GAPS_KEPT))
    usual_s: float = 0.0  # their median; 0 if there are none
    observers: dict[str, tuple[bool, float]] = {}

    @property
    def was_heard(self) -> bool:
        """Whether it has said anything in this life of the controller."""
        return self.facts_at is not None or self.reported_at is not None

    @property
    def is_booting(self) -> bool:
        """Whether its start is not over: what it lists now is not what it will have."""
        return self.facts is not None and self.facts.booting

    @property
    def has_told(self) -> bool:
        """Whether it has told the list of its replicas in this life of the controller."""
        return self.replicas_at is not None

    def report(self, now: float, *, paused: bool) -> None:
        """A heartbeat is heard. Its usual gaps go by when it arrived: how long it waited here is not the node's."""
        arrived = self.knocked_at or now
        if self.reported_at is not None and arrived > self.reported_at:
            self.gaps.append(arrived - self.reported_at)
            self.usual_s = median(self.gaps)
        self.reported_at, self.knocked_at, self.excused_s, self.deafest_s = now, 0.0, 0.0, 0.0
        self.paused = paused

    @property
    def silence_s(self) -> float:
        """Seconds without a report after which the node is unknown."""
        return max(SILENT_GAPS * self.usual_s, SILENT_LEAST_S)

    @property
    def heard_at(self) -> float | None:
        """When it was last heard, or when we began to listen; None if its reports are not watched."""
        return self.awaited_from if self.reported_at is None else self.reported_at

    @property
    def quiet_from(self) -> float:
        """From when its silence counts; endless if its reports are not watched."""
        heard = self.heard_at
        return float("inf") if heard is None else max(heard, self.knocked_at) + self.excused_s

    def knock(self, now: float) -> None:
        """A report of it arrived, and is not heard yet."""
        self.knocked_at, self.excused_s, self.deafest_s = now, 0.0, 0.0

    def excuse(self, seconds: float, now: float) -> None:
        """Leave so many seconds until now out of its silence.

        All of the longest time that we were deaf, of the rest no more than ``EXCUSED_MOST_S``: a process that is late
        again and again reads between, and must come to an end with a node that is gone.
        """
        more = max(0.0, min(seconds, now - self.quiet_from))
        self.deafest_s = max(self.deafest_s, more)
        self.excused_s = min(self.excused_s + more, self.deafest_s + EXCUSED_MOST_S)

    def silent_at(self) -> float:
        """When it becomes unknown if nothing more comes; endless if its reports are not watched."""
        return self.quiet_from + self.silence_s

    def is_overdue(self, now: float) -> bool:
        """Whether a report is late: too early to call the node silent, too late to call it well."""
        return now - self.quiet_from > self.silence_s / 2

    def unreached_by(self) -> list[str]:
        """Who could not reach it when they last tried during this silence."""
        since = self.heard_at or 0.0
        return sorted(by for by, (ok, at) in self.observers.items() if not ok and at >= since and by != self.name)

    def is_reached(self) -> bool:
        """Whether somebody has reached it during this silence."""
        since = self.heard_at or 0.0
        return any(ok and at >= since for ok, at in self.observers.values())
