"""The agenda: when the rules must look again though nothing is heard. A heap, so that a quiet fleet costs nothing.

A *reminder* fires once, at its time. A *watch* follows something whose deadline moves (readings grow old, reports
stay away): its entry may be too early, and is put off when it is reached. So a sample costs no heap operation.
"""

import heapq
from collections.abc import Callable
from itertools import count

from vocab.lines import Subject

NEVER = float("inf")
Due = Callable[[], float]


class Agenda:
    """Deadlines, earliest first, each with the subject that is to be looked at."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Subject]] = []
        self._reminders: set[tuple[float, Subject]] = set()
        self._watches: dict[Subject, tuple[float, Due]] = {}
        self._ticket = count()  # entries of one moment fire in the order in which they were made

    def remind(self, at: float, subject: Subject) -> None:
        """Look at the subject at this time."""
        if at < NEVER and (at, subject) not in self._reminders:
            self._reminders.add((at, subject))
            heapq.heappush(self._heap, (at, next(self._ticket), subject))

    def watch(self, subject: Subject, due: Due) -> None:
        """Look at the subject once ``due`` is over; call it again when that may have become earlier, or has fired."""
        at = due()
        known = self._watches.get(subject)
        if at < NEVER and (known is None or at < known[0]):
            self._watches[subject] = (at, due)
            heapq.heappush(self._heap, (at, next(self._ticket), subject))

    def next(self) -> float | None:
        """The earliest time at which something is due."""
        while self._heap:
            at, _, subject = self._heap[0]
            if (at, subject) in self._reminders:
                return at
            known = self._watches.get(subject)
            real = known[1]() if known is not None and known[0] == at else NEVER
            if real <= at:
                return at
            heapq.heappop(self._heap)
            if known is not None and known[0] == at:
                del self._watches[subject]
                self.watch(subject, known[1])
        return None

    def take(self, now: float) -> list[Subject]:
        """The subjects that are due by ``now``, once."""
        due: dict[Subject, None] = {}
        while (at := self.next()) is not None and at <= now:
            _, _, subject = heapq.heappop(self._heap)
            due[subject] = None
            if (at, subject) in self._reminders:
                self._reminders.discard((at, subject))
            else:
                del self._watches[subject]
        return list(due)
