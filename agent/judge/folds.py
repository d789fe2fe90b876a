"""Folding: repeats of one fault within a minute are one event, whose count stays exact.

The first is sent at once; a harsher judgement at once; a higher count at most every ten seconds, and a
last time when the minute after the last repeat is over.
"""

from collections.abc import Callable

import msgspec

from vocab.events import Event, Flag

SEPARATOR = "\x1f"  # of the parts of a key: subject, code, discriminator, injected
WINDOW_S = 60.0
REVISION_S = 10.0
_DOUBTS = frozenset({Flag.INFERRED, Flag.PARTIAL, Flag.LOOKUP_FAILED})  # one sure evidence ends them
BURST_S = 1.0  # the lines of one exception come within milliseconds
MOST_EVIDENCE = 6  # the first of a fold; later ones say the same, and a storm must stay small
MOST_APART = 32  # open folds of one code on one subject; what comes beyond them folds into the last
STORM = 600  # repeats in one fold: ten a second for a minute


class Fold(msgspec.Struct):
    """An event that may still grow, as it is now and as it was last sent."""

    event: Event
    seen: float
    sent: float
    dirty: bool = False


class Folds(msgspec.Struct):
    """The open folds, by subject, code and discriminator."""

    open: dict[str, Fold] = {}

    def add(self, key: str, event: Event, now: float, *, at_once: bool) -> Event | None:
        """Take one more evidence in; the event or revision to send now, if any."""
        fold = self.open.get(key)
        if fold is None or now - fold.seen > WINDOW_S or fold.event.boot_id != event.boot_id:
            event = event if event.count else msgspec.structs.replace(event, count=1)
            self.open[key] = Fold(event, now, now)
            return event
        harsher = _rank(event) > _rank(fold.event)
        merged = _merge(fold.event, event)
        fold.dirty = fold.dirty or _judgement(merged) != _judgement(fold.event)
        fold.event, fold.seen = merged, now
        if not fold.dirty and not at_once:
            return None
        if harsher or at_once or now - fold.sent >= REVISION_S:
            return _send(fold, now)
        return None

    def crowded(self, key: str) -> str | None:
        """Where a new key goes when too many of its subject and code are open: the last of them, or None."""
        subject, code, _, injected = key.split(SEPARATOR)
        start = f"{subject}{SEPARATOR}{code}{SEPARATOR}"
        alike = [known for known in self.open if known.startswith(start) and known.endswith(SEPARATOR + injected)]
        return alike[-1] if len(alike) >= MOST_APART else None

    def recent(self, now: float) -> list[str]:
        """The keys of folds that grew within the length of one burst, the latest first."""
        fresh = [(fold.seen, key) for key, fold in self.open.items() if now - fold.seen <= BURST_S]
        return [key for _, key in sorted(fresh, reverse=True)]

    def replaced(self, key: str, event: Event, now: float) -> Event | None:
        """The last revision of a fold whose place a new event takes."""
        fold = self.open.get(key)
        over = fold is not None and (now - fold.seen > WINDOW_S or fold.event.boot_id != event.boot_id)
        return _send(fold, now) if fold is not None and over and fold.dirty else None

    def change(self, keys: list[str], change: Callable[[Event], Event]) -> None:
        """Judge open events anew; the revision goes out when it is due."""
        for key in keys:
            fold = self.open[key]
            changed = change(fold.event)
            if changed != fold.event:
                fold.event, fold.dirty = changed, True

    def tick(self, now: float) -> list[Event]:
        """The revisions that are due; folds that are over are forgotten."""
        due = [fold for fold in self.open.values() if fold.dirty and now >= _due(fold)]
        events = [_send(fold, now) for fold in due]
        for key in [key for key, fold in self.open.items() if now - fold.seen > WINDOW_S and not fold.dirty]:
            del self.open[key]
        return events

    def close(self, now: float) -> list[Event]:
        """The last revisions of all open folds, at the end of the input."""
        return [_send(fold, now) for fold in self.open.values() if fold.dirty]

    def next_deadline(self) -> float | None:
        """When the first revision is due."""
        return min((_due(fold) for fold in self.open.values() if fold.dirty), default=None)


def _due(fold: Fold) -> float:
    return fold.sent + REVISION_S


def _send(fold: Fold, now: float) -> Event:
    fold.event = msgspec.structs.replace(fold.event, rev=fold.event.rev + 1)
    fold.sent, fold.dirty = now, False
    return fold.event


def _rank(event: Event) -> tuple[int, int]:
    return event.severity.rank, event.recovery.rank


def _judgement(event: Event) -> tuple[int, str | None, int, int]:
    return event.count, event.cause, *_rank(event)


def _merge(old: Event, new: Event) -> Event:
    """The fold's event after one more; its identity and first time stay, the harsher judgement wins."""
    harsher = new if _rank(new) > _rank(old) else old
    count = old.count + new.count
    flags = {*old.flags, *new.flags} - (_DOUBTS - (set(old.flags) & set(new.flags)))
    if count >= STORM:
        flags.add(Flag.STORM)
    return msgspec.structs.replace(
        old,
        count=count,
        last_at=new.last_at or old.last_at,
        severity=harsher.severity,
        recovery=harsher.recovery,
        gpu=old.gpu or new.gpu,
        pid=old.pid if old.pid is not None else new.pid,
        process=old.process or new.process,
        fields=new.fields | old.fields,
        cause=old.cause or new.cause,
        flags=tuple(sorted(flags)),
        evidence=(*old.evidence, *new.evidence)[:MOST_EVIDENCE],
    )
