"""Which records were told already: by another reader of the same log, or by the same one that reads it again.

Copies that other readers bring (journal, dmesg, syslog) are known by the kernel's own stamp, to a millisecond, and
the text. A reader that begins anew (the agent was restarted, its cursor has gone) is known by how far it had come;
one whose stamps go back is reading again what it has told. Only how far each has come is stored.
"""

from itertools import islice
from typing import NamedTuple

import msgspec

MOST_SEEN = 4096  # records of interest; a storm of one second is a few thousand
MOST_AT_ONE_STAMP = 256  # texts of one stamp; syslog counts in whole seconds
Key = tuple[str, int | None, str]  # clock, milliseconds, text
Reader = tuple[str, int]  # source and clock, and how often it has begun anew
SAME_S = 0.001
BACK_S = 1.0  # processors print out of order by microseconds; more than that is a reader that began anew


class Stamp(NamedTuple):
    """When a record was written, in seconds of one clock: ``kernel`` (since boot) or ``wall``; None: nobody knows."""

    clock: str
    at_s: float | None


class Mark(msgspec.Struct):
    """How far a reader has come: the last stamp, and which texts it has told of that stamp."""

    at_s: float
    texts: dict[str, int] = {}


class Copies(msgspec.Struct, dict=True):
    """``marks``: by source and clock."""

    marks: dict[str, Mark] = {}

    def __post_init__(self) -> None:
        """A judge that is restored has readers that begin anew, somewhere at or before where they were."""
        self._seen: dict[Key, tuple[tuple[Reader, int], ...]] = {}
        self._turns: dict[str, int] = {}
        self._until: dict[str, Mark] = {}
        self.reopen()
        self._take_over()

    def _take_over(self) -> None:
        """The journal is read where kmsg no longer may be: it goes on where the log of this boot was left."""
        marks = [mark for name, mark in self.marks.items() if name.endswith(" kernel")]
        if marks:
            last = max(marks, key=lambda mark: mark.at_s)
            self._until["journal kernel"] = Mark(last.at_s, dict(last.texts))

    def reopen(self, source: str | None = None) -> None:
        """This source (or all of them) may tell again what it has told."""
        for name, mark in self.marks.items():
            if source is None or name.partition(" ")[0] == source:
                self._until[name] = Mark(mark.at_s, dict(mark.texts))
                self._turns[name] = self._turns.get(name, 0) + 1

    def clear(self) -> None:
        """Another boot: stamps begin anew."""
        self.marks = {}
        self._seen, self._turns, self._until = {}, {}, {}

    def ordinal(self, source: str, stamp: Stamp, text: str, *, numbered: bool = False) -> int | None:
        """How many records of this stamp and text came before; None if this one was told already.

        ``numbered``: the record has a number of its own, so its reader never tells it twice.
        """
        name = f"{source} {stamp.clock}"
        at_s = stamp.at_s
        again = not numbered and at_s is not None and name in self._until and self._told(name, at_s, text)
        if not again:
            self._advance(name, at_s, text)
        reader = (name, self._turns.get(name, 0))
        key = self._key(stamp, text)
        seen = self._seen
        counted = seen.pop(key, None)
        if counted is None:
            seen[key] = ((reader, 1),)
            if len(seen) >= 2 * MOST_SEEN:  # the older half at once: one at a time costs a look at all before it
                for old in [*islice(seen, MOST_SEEN)]:
                    del seen[old]
            return None if again else 0
        counts = dict(counted)
        told = max((count for other, count in counts.items() if other != reader), default=0)
        before = counts.get(reader, 0)
        counts[reader] = before + 1
        seen[key] = tuple(counts.items())
        return None if again or before < told else before

    def _told(self, name: str, at_s: float, text: str) -> bool:
        """Whether a reader that began anew is still where it has been before."""
        until = self._until.get(name)
        if until is None:
            return False
        if at_s > until.at_s + SAME_S:
            del self._until[name]
            return False
        if at_s < until.at_s - SAME_S:
            return True
        left = until.texts.get(text, 0)
        until.texts[text] = left - 1
        return left > 0

    def _advance(self, name: str, at_s: float | None, text: str) -> None:
        if at_s is None:
            return
        mark = self.marks.get(name)
        if mark is None:
            self.marks[name] = Mark(at_s, {text: 1})
            return
        if at_s < mark.at_s - BACK_S:
            self._turns[name] = self._turns.get(name, 0) + 1
        if abs(at_s - mark.at_s) > SAME_S:
            mark.at_s, mark.texts = at_s, {text: 1}
        elif len(mark.texts) < MOST_AT_ONE_STAMP or text in mark.texts:
            mark.texts[text] = mark.texts.get(text, 0) + 1

    def _key(self, stamp: Stamp, text: str) -> Key:
        """Stamps of copies differ by less than 1 ms, which may fall on two sides of a rounding."""
        if stamp.at_s is None:
            return stamp.clock, None, text
        at_ms = round(stamp.at_s * 1000)
        for near in (at_ms, at_ms - 1, at_ms + 1):
            if (key := (stamp.clock, near, text)) in self._seen:
                return key
        return stamp.clock, at_ms, text
