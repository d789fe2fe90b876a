"""The agenda: when the rules must look again though nothing is heard. A heap, so that a quiet fleet costs nothing.

A *reminder* fires once, at its time. A *watch* follows something whose deadline moves (readings grow old, reports
stay away): its entry may be too early, and is put off when it is reached. So a sample costs no heap operation.
"""

import heapq
from collections.abc import Callable
from itertools import count

import msgspec

from vocab.lines import Subject

NEVER = float("inf")
AT_ONCE = 500  # entries that one question puts off: nearly all of a fleet's 100,000 have moved since they were made
Due = Callable[[], float]


class _Entry(msgspec.Struct):
    """A deadline that is in the heap. One that is taken out, or has an earlier one beside it, counts no more."""

    at: float
    subject: Subject
    due: Due | None = None  # of a watch: when it really is
    counts: bool = True


class Agenda:
    """Deadlines, earliest first, each with the subject that is to be looked at."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, _Entry]] = []
        self._reminders: set[tuple[float, Subject]] = set()
        self._watches: dict[Subject, _Entry] = {}
        self._ticket = count()  # entries of one moment fire in the order in which they were made

    def remind(self, at: float, subject: Subject) -> None:
        """Look at the subject at this time."""
        if at < NEVER and (at, subject) not in self._reminders:
            self._reminders.add((at, subject))
            self._push(_Entry(at, subject))

    def watch(self, subject: Subject, due: Due) -> None:
        """Look at the subject once ``due`` is over; call it again when that may have become earlier, or has fired."""
        at = due()
        known = self._watches.get(subject)
        if at < NEVER and (known is None or at < known.at):
            if known is not None:
                known.counts = False
            entry = self._watches[subject] = _Entry(at, subject, due)
            self._push(entry)

    def _push(self, entry: _Entry) -> None:
        heapq.heappush(self._heap, (entry.at, next(self._ticket), entry))

    def next(self) -> float | None:
        """The earliest time at which something is due, or may be; None if nothing is."""
        for _ in range(AT_ONCE):
            if self._is_as_it_stands():
                break
        return self._heap[0][0] if self._heap else None

    def _is_as_it_stands(self) -> bool:
        """Whether the first entry is due when the heap says so; one that is not is put off, or taken out."""
        heap = self._heap
        if not heap:
            return True
        at, _, entry = heap[0]
        if not entry.counts:
            heapq.heappop(heap)
        elif entry.due is None or (real := entry.due()) <= at:
            return True
        elif real < NEVER:  # it is put off: in the heap, nothing else of it changes
            entry.at = real
            heapq.heapreplace(heap, (real, next(self._ticket), entry))
        else:
            heapq.heappop(heap)
            del self._watches[entry.subject]
        return False

    def take(self, now: float) -> list[Subject]:
        """The subjects that are due by ``now``, once."""
        due: dict[Subject, None] = {}
        heap = self._heap
        while heap and heap[0][0] <= now:
            if not self._is_as_it_stands():
                continue
            at, _, entry = heapq.heappop(heap)
            due[entry.subject] = None
            if entry.due is None:
                self._reminders.discard((at, entry.subject))
            else:
                del self._watches[entry.subject]
        return list(due)
