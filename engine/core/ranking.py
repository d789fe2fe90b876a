"""Whose turn it is among those that wait: fair between clients, by priority, and never for ever.

Theory. Turns are counted like the rounds of a round robin: a request takes the turn behind the latest admitted one
and behind its client's own waiting requests of the same priority, so a client that sends a hundred gets every other
admission while one other client waits, not a hundred in a row. Each level of priority (lower goes first) is worth
``PRIORITY_TURNS`` turns. The sum is the rank, given once; equal ranks go by arrival.

Nobody starves. Whoever comes later has a turn beyond the latest admitted one, so each client and priority adds at
most one request a turn; once the turns have passed a rank, none can come before it. At most
(rank - turn now) x clients x priorities requests are admitted first, however many are sent.
"""

from collections.abc import Iterable
from operator import attrgetter

from engine.core.sequence import Sequence

PRIORITY_TURNS = 64  # a lower priority waits for at most so many rounds of a higher one's requests

rank = attrgetter("rank")


class Ranking:
    """The count of turns."""

    def __init__(self) -> None:
        self._turn = 0  # the latest that was admitted
        self._arrivals = 0

    def arrived(self, sequence: Sequence, waiting: Iterable[Sequence]) -> None:
        """Give a request its rank."""
        line = (sequence.client, sequence.priority)
        before = (one.turn for one in waiting if (one.client, one.priority) == line)
        sequence.turn = max(self._turn, *before, self._turn) + 1
        self._arrivals += 1
        sequence.rank = (sequence.turn + PRIORITY_TURNS * sequence.priority, self._arrivals)

    def admitted(self, sequence: Sequence) -> None:
        """Count on to the turn of a request that begins to run (again)."""
        self._turn = max(self._turn, sequence.turn)
