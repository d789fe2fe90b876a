"""When each node was last heard, and what it said of its own link to us. Lost with the process, back in seconds.

Decisions never read from here: the Core is told of every report.
"""

import msgspec

from vocab.clock import Clock
from vocab.messages import Batch

REPORTS_PER_S = 1250.0  # about what one core takes in beside all else
LEAST_HEARTBEAT_S, MOST_HEARTBEAT_S = 2.0, 10.0  # the most: a node that is late by half of it is not called silent yet


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """The latest of one node. ``ahead_s``: its clock before ours; ``generation``: of the state that it has taken."""

    monotonic: float
    ahead_s: float
    generation: int
    spool_dropped: int


class Reports:
    """The latest of every node."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.nodes: dict[str, Heard] = {}

    def take(self, batch: Batch) -> None:
        """Remember a report."""
        self.nodes[batch.node] = Heard(
            monotonic=self._clock.monotonic(),
            ahead_s=batch.at - self._clock.now(),
            generation=batch.generation,
            spool_dropped=batch.spool_dropped,
        )

    @property
    def heartbeat_s(self) -> float:
        """How often a node that has nothing to say should report: what many nodes cost stays what few do."""
        return min(max(len(self.nodes) / REPORTS_PER_S, LEAST_HEARTBEAT_S), MOST_HEARTBEAT_S)

    def ages_s(self) -> dict[str, float]:
        """Seconds since the last report of each node that reported since this process began."""
        now = self._clock.monotonic()
        return {node: now - heard.monotonic for node, heard in self.nodes.items()}

    def ahead_s(self) -> dict[str, float]:
        """How far the clock of each was before ours then; a report's way counts as behind."""
        return {node: heard.ahead_s for node, heard in self.nodes.items()}
