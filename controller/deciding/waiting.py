"""What waits for a turn: faults and orders before everything else, and of each node what came first first.

A fleet that joins, or empties its spools, makes thousands of reports wait. A fault among them must not: it takes the
next turn, unless an older report of its own node still waits, without which it may not be understood. More reports than
all nodes of a large fleet send at one time are not kept: they come again.
"""

import asyncio
from collections import Counter, deque

from controller.several.submission import Submission
from vocab.errors import Unreachable
from vocab.events import Severity
from vocab.messages import EventItem

FEW = 50  # records: what brings more is a spool that is emptied, and its faults are not new
LEAST_OTHERS = 4  # of a turn, one in so many is for what is not urgent, so that nobody waits for ever
MOST = 25_000  # reports: two of each node of 12,500 that come back at one time
MOST_RECORDS = 100_000  # in them: some hundred MB, and half a minute of turns


class _Line:
    """One of the two queues, and how many of each node stand in it."""

    def __init__(self) -> None:
        self._all: deque[Submission] = deque()
        self._nodes: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._all)

    def holds(self, submission: Submission) -> bool:
        """Whether anything of the same node stands in it."""
        return submission.batch is not None and submission.batch.node in self._nodes

    def put(self, submission: Submission) -> None:
        self._all.append(submission)
        if submission.batch is not None:
            self._nodes[submission.batch.node] += 1

    def take(self) -> Submission:
        first = self._all.popleft()
        if first.batch is not None:
            self._nodes[first.batch.node] -= 1
            if not self._nodes[first.batch.node]:
                del self._nodes[first.batch.node]
        return first


class Waiting:
    """Two queues; what waits of one node is all in the same. For one reader."""

    def __init__(self) -> None:
        self._urgent, self._others = _Line(), _Line()
        self._records = 0
        self._some = asyncio.Event()

    def __len__(self) -> int:
        return len(self._urgent) + len(self._others)

    def put(self, submission: Submission) -> None:
        """At the end of its queue. Raises Unreachable for a report where too many wait."""
        if submission.batch is not None and (len(self) >= MOST or self._records >= MOST_RECORDS):
            raise Unreachable("more reports wait to be stored than can be kept; send the batch again")
        first = is_urgent(submission) or self._urgent.holds(submission)
        line = self._urgent if first and not self._others.holds(submission) else self._others
        line.put(submission)
        self._records += submission.records
        self._some.set()

    async def some(self) -> None:
        """Wait until there is any."""
        await self._some.wait()

    def take(self, most: int, records: int) -> list[Submission]:
        """The next, at most so many, and no more once they bring so many records.

        A report of which nobody waits any more for the answer is left out: it was not acknowledged, and comes again.
        """
        taken: list[Submission] = []
        brought = 0
        while len(self) and len(taken) < most and brought < records:
            of_others = not self._urgent or (self._others and len(taken) % LEAST_OTHERS == LEAST_OTHERS - 1)
            each = (self._others if of_others else self._urgent).take()
            self._records -= each.records
            if each.batch is not None and each.stored.cancelled():
                continue
            taken.append(each)
            brought += each.records
        if not len(self):
            self._some.clear()
        return taken


def wanted(reports: list[Submission]) -> list[Submission]:
    """Those of which somebody still waits for the answer; the others were not acknowledged, and come again."""
    return [each for each in reports if not each.stored.cancelled()]


def is_urgent(submission: Submission) -> bool:
    """Whether somebody waits for what follows from it: an order, or a report of a few records with a fault."""
    if submission.batch is None:
        return bool(submission.stimuli)
    items = submission.batch.items
    if len(items) > FEW:
        return False
    return any(
        not isinstance(each.item, EventItem) or each.item.event.severity.rank >= Severity.ERROR.rank for each in items
    )
