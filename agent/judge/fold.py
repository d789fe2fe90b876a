"""One fold: an event that may still grow, and how one more evidence joins it."""

import msgspec

from vocab.events import MAX_EVIDENCE, Event, Evidence, Flag

SEPARATOR = "\x1f"  # of the parts of a key: subject, code, discriminator, injected
WINDOW_S = 60.0
REVISION_S = 10.0
MOST_EVIDENCE = 6  # the first of a fold; later ones say the same, and a storm must stay small
GROWING = frozenset({"ranks", "pids"})  # fields that list what was seen so far
STORM = 600  # repeats in one fold: ten a second for a minute
_DOUBTS = frozenset({Flag.INFERRED, Flag.PARTIAL, Flag.LOOKUP_FAILED})  # one sure evidence ends them


class Fold(msgspec.Struct):
    """An event that may still grow, as it is now and as it was last sent. ``order`` rises with each that is opened."""

    event: Event
    seen: float
    sent: float
    order: int
    dirty: bool = False

    @property
    def due(self) -> float:
        """When its next revision may go out."""
        return self.sent + REVISION_S

    @property
    def ends(self) -> float:
        """When it is over, if nothing more comes."""
        return self.seen + WINDOW_S

    def send(self, now: float) -> Event:
        """The revision that goes out now."""
        self.event = msgspec.structs.replace(self.event, rev=self.event.rev + 1)
        self.sent, self.dirty = now, False
        return self.event


def rank(event: Event) -> tuple[int, int]:
    """How harsh an event is judged: severity first."""
    return event.severity.rank, event.recovery.rank


def judgement(event: Event) -> tuple[int, str | None, int, int]:
    """What a new revision is worth: count, cause and how harsh."""
    return event.count, event.cause, *rank(event)


def is_repeat(before: Event, after: Event) -> bool:
    """Whether nothing is new but the count and the time."""
    return before == msgspec.structs.replace(after, rev=before.rev, count=before.count, last_at=before.last_at)


def merge(old: Event, new: Event) -> Event:
    """The fold's event after one more; its identity and first time stay, the harsher judgement wins."""
    harsher, milder = (new, old) if rank(new) > rank(old) else (old, new)
    count = old.count + new.count
    return msgspec.structs.replace(
        old,
        count=count,
        last_at=new.last_at or old.last_at,
        severity=harsher.severity,
        recovery=harsher.recovery,
        gpu=old.gpu or new.gpu,
        pid=old.pid if old.pid is not None else new.pid,
        process=old.process or new.process,
        text=harsher.text or milder.text,
        fields=milder.fields | harsher.fields | {name: new.fields[name] for name in GROWING & new.fields.keys()},
        cause=old.cause or new.cause,
        flags=_flags(old, new, count),
        evidence=_evidence(old, new),
    )


def grown(event: Event, more: int, at: str | None) -> Event:
    """The event after so many more that say nothing new."""
    count = event.count + more
    flags = _flags(event, event, count)
    return msgspec.structs.replace(event, count=count, last_at=at or event.last_at, flags=flags)


def _evidence(old: Event, new: Event) -> tuple[Evidence, ...]:
    """The first few of each source: a second witness is worth a place however much the first has said."""
    told = {evidence.source for evidence in old.evidence}
    room = MOST_EVIDENCE - len(old.evidence)
    more = [each for n, each in enumerate(new.evidence) if n < room or each.source not in told]
    return (*old.evidence, *more)[:MAX_EVIDENCE] if more else old.evidence


def _flags(old: Event, new: Event, count: int) -> tuple[Flag, ...]:
    if old.flags == new.flags and count < STORM:
        return old.flags
    flags = {*old.flags, *new.flags} - (_DOUBTS - (set(old.flags) & set(new.flags)))
    if count >= STORM:
        flags.add(Flag.STORM)
    return tuple(sorted(flags))
