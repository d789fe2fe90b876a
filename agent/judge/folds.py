"""Folding: repeats of one fault within a minute are one event, whose count stays exact.

The first is sent at once; a harsher judgement at once; a higher count at most every ten seconds, and a
last time when the minute after the last repeat is over.
"""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from agent.judge.fold import SEPARATOR, Fold, grown, judgement, merge, rank
from agent.judge.shelf import Shelf
from vocab.events import Event

BURST_S = 1.0  # the lines of one exception come within milliseconds
MOST_APART = 32  # open folds of one code on one subject; what comes beyond them folds into the last


class Folds(msgspec.Struct, dict=True):
    """The open folds, by subject, code and discriminator. ``opened``: how many there have been."""

    open: dict[str, Fold] = {}
    opened: int = 0

    def __post_init__(self) -> None:
        """The shelf is made anew from what was stored."""
        self._shelf = Shelf(self.open)

    def add(self, key: str, event: Event, now: float, *, at_once: bool, seen: float | None = None) -> Event | None:
        """Take one more evidence in, which is of the time ``seen``; the event or revision to send now, if any."""
        seen = now if seen is None else seen
        fold = self.open.get(key)
        if fold is None or _is_over(fold, event.boot_id, seen):
            return self._begin(key, event, now, seen)
        harsher = rank(event) > rank(fold.event)
        merged = merge(fold.event, event)
        self._change(key, fold, merged, is_news=judgement(merged) != judgement(fold.event))
        fold.seen = max(fold.seen, seen)
        if not fold.dirty and not at_once:
            return None
        return fold.send(now) if harsher or at_once or now >= fold.due else None

    def more(self, key: str, count: int, at: str | None, now: float, seen: float) -> Event | None:
        """So many more of what is known already; the revision to send now, if any."""
        fold = self.open[key]
        self._change(key, fold, grown(fold.event, count, at), is_news=True)
        fold.seen = max(fold.seen, seen)
        return fold.send(now) if now >= fold.due else None

    def _begin(self, key: str, event: Event, now: float, seen: float) -> Event:
        event = event if event.count else msgspec.structs.replace(event, count=1)
        self.opened += 1
        fold = self.open[key] = Fold(event, seen, now, self.opened)
        self._shelf.put(key, fold)
        return event

    def _change(self, key: str, fold: Fold, event: Event, *, is_news: bool) -> None:
        fold.event = event
        if is_news and not fold.dirty:
            fold.dirty = True
            self._shelf.dirty(key, fold)

    def growing(self, key: str, boot_id: str | None, seen: float) -> str | None:
        """The id of the event that one more evidence under this key joins."""
        fold = self.open.get(key)
        return None if fold is None or _is_over(fold, boot_id, seen) else fold.event.id

    def crowded(self, key: str) -> str | None:
        """Where a new key goes when too many of its subject and code are open: the last of them, or None."""
        injected = key[key.rindex(SEPARATOR) :]
        alike = [known for known in self._shelf.alike(key) if known.endswith(injected)]
        return alike[-1] if len(alike) >= MOST_APART else None

    def recent(self, key: str, now: float) -> list[str]:
        """The keys of like subject and code whose folds grew within the length of one burst, the latest first."""
        fresh = [
            (fold.seen, known) for known in self._shelf.alike(key) if now - (fold := self.open[known]).seen <= BURST_S
        ]
        return [known for _, known in sorted(fresh, reverse=True)]

    def of_codes(self, codes: Iterable[str]) -> Iterator[tuple[str, Event]]:
        """The open events of these codes, with their keys."""
        return ((key, self.open[key].event) for key in self._shelf.of_codes(codes))

    def replaced(self, key: str, event: Event, now: float, seen: float | None = None) -> Event | None:
        """The last revision of a fold whose place a new event takes."""
        fold = self.open.get(key)
        over = fold is not None and _is_over(fold, event.boot_id, now if seen is None else seen)
        return fold.send(now) if fold is not None and fold.dirty and over else None

    def latest(self, key: str, now: float) -> str | None:
        """The key of the fold of like subject and code that grew last; None if none may still grow."""
        growing = [known for known in self._shelf.alike(key) if self.open[known].ends >= now]
        return max(growing, key=lambda known: self.open[known].seen, default=None)

    def change(self, keys: Iterable[str], change: Callable[[Event, float], Event]) -> None:
        """Judge open events anew, by what they are and when they last grew; the revision goes out when it is due."""
        for key in keys:
            fold = self.open[key]
            changed = change(fold.event, fold.seen)
            self._change(key, fold, changed, is_news=changed != fold.event)

    def escalate(self, key: str, event: Event, now: float) -> Event:
        """A harsher judgement of an open event, to be sent at once."""
        fold = self.open[key]
        fold.event = event
        return fold.send(now)

    def tick(self, now: float) -> list[Event]:
        """The revisions that are due; folds that are over are forgotten."""
        events = [fold.send(now) for fold in self._shelf.take_due(now)]
        self.drop_over(now)
        return events

    def drop_over(self, now: float) -> None:
        """Forget the folds that are over."""
        self._shelf.drop_over(now)

    def close(self, now: float) -> list[Event]:
        """The last revisions of all open folds, at the end of the input."""
        return [fold.send(now) for fold in self.open.values() if fold.dirty]

    def next_deadline(self) -> float | None:
        """When the first revision is due."""
        return self._shelf.next_due()


def _is_over(fold: Fold, boot_id: str | None, now: float) -> bool:
    return fold.ends < now or fold.event.boot_id != boot_id
