"""Storms: a line that says again what was judged already is counted, and judged once for all that came.

A broken GPU can print the same few lines hundreds of thousands of times. A line is only counted if its text was judged
several times with nothing new but the count, and nothing else has been found since. What was counted is judged before
anything else is looked at, and at least every ten seconds: as one finding, with the exact count and the last time.
"""

import msgspec

from agent.kernel.parsed import Prefix
from agent.probes.probe import Finding
from agent.probes.scene import Scene
from vocab.observations import KernelRecord

SURE = 8  # times judged alike; no rule of the catalogue waits for more repeats than three
HOLD_S = 10.0  # as often as a revision of an event may go out
WINDOW_S = 60.0  # as long as repeats fold
MOST = 256  # texts; a storm has a few dozen


class Known(msgspec.Struct):
    """A text: what it was judged to be, how often, and into which fold it went; None: not to be trusted.

    ``said``: by what copies of it are known. ``turn`` and ``absent``: how many news there had been, and how many GPUs
    were missing, when it was last judged. ``seen``: when it last came.
    """

    finding: Finding
    said: str
    times: int
    turn: int
    absent: int
    seen: float
    fold: str | None = None


class Held(msgspec.Struct):
    """Repeats that are counted and not yet judged: of what, the last record, how many, and when the last came."""

    finding: Finding
    fold: str
    record: KernelRecord
    seen: float
    count: int = 0


class Storm:
    """``held`` is stored with the log. The rest is not: after a restart each text is judged anew a few times."""

    def __init__(self, held: dict[str, Held]) -> None:
        self._held = held
        self._known: dict[str, Known] = {}
        self._last: Known | None = None  # the text that was judged last
        self._turn = 0
        self.due: float | None = -HOLD_S if held else None  # of an earlier life: at once

    def learn(self, key: str, finding: Finding, said: str, scene: Scene, now: float) -> None:
        """A line of this text is about to be judged."""
        before = self._known.pop(key, None)
        times = 1 if before is None else before.times + 1
        self._last = self._known[key] = Known(finding, said, times, self._turn, len(scene.absent), now)
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]

    def judged(self, finding: Finding, fold: str | None) -> None:
        """The finding went into this fold."""
        if self._last is not None and self._last.finding is finding:
            self._last.fold = fold

    def news(self) -> None:
        """Something is not as it was: each text is judged again before it is only counted."""
        self._turn += 1

    def rewind(self) -> None:
        """Another boot."""
        self._known.clear()

    def knows(self, key: str, scene: Scene, now: float) -> Known | None:
        """The text of this key, if one more of it would change nothing but a count."""
        known = self._known.get(key)
        if known is None or known.fold is None or known.times < SURE or known.turn != self._turn:
            return None
        return known if known.absent == len(scene.absent) and now - known.seen <= WINDOW_S else None

    def hold(self, key: str, known: Known, record: KernelRecord, now: float) -> None:
        """Count one more."""
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = Held(known.finding, known.fold or "", record, now)
            self.due = now + HOLD_S if self.due is None else self.due
        held.record = record
        held.seen = known.seen = now
        held.count += 1

    def release(self) -> list[Held]:
        """What was counted, in the order in which the texts last came; it is held no longer."""
        held = sorted(self._held.values(), key=lambda each: each.seen)
        self._held.clear()
        self.due = None
        return held


def key_of(record: KernelRecord, prefix: Prefix, text: str) -> str:
    """Equal for lines that differ in nothing but their stamps and numbers."""
    return f"{record.source}\x1f{record.facility}\x1f{prefix.kind}\x1f{prefix.priority}\x1f{prefix.facility}\x1f{text}"
