"""A run of equal samples: how persistent a soft signal is, and when that is worth a word.

A sample that is missing is not counted at all: it neither speaks for a signal nor against it.
"""

from enum import StrEnum

import msgspec

NEEDED = 3  # polls in a row before a soft signal counts: one poll can hit a change of clocks


class Streak(msgspec.Struct):
    """How often in a row the signal was bad, or good after it was raised; when it was last bad."""

    bad: int = 0
    good: int = 0
    raised: int = 0  # rank of the severity that was raised, plus one; 0 is none
    last_bad: float = 0.0
    since: float = 0.0  # when the run of bad or of good samples began

    def count(self, *, bad: bool, now: float) -> None:
        """Take one sample in. A sample that is missing is not counted at all."""
        if (self.bad == 0) if bad else (self.good == 0):
            self.since = now
        if bad:
            self.bad, self.good, self.last_bad = self.bad + 1, 0, now
        else:
            self.bad, self.good = 0, self.good + 1

    def lasted(self, now: float) -> float:
        """Seconds from the first to this sample of the run."""
        return now - self.since


class Patience(msgspec.Struct, frozen=True):
    """How long a signal must be bad before it is said, and good before it is taken back: samples and seconds."""

    polls: int = NEEDED
    lasts_s: float = 0.0
    calm_polls: int = NEEDED
    calm_s: float = 0.0


class Turn(StrEnum):
    """What a sample changed."""

    RAISED = "raised"
    ENDED = "ended"


class Signals(msgspec.Struct):
    """Streaks by key, for a probe that says a thing once and takes it back once."""

    streaks: dict[str, Streak] = {}

    def take(self, key: str, patience: Patience, now: float, *, bad: bool, rank: int = 1) -> Turn | None:
        """Count one sample. ``rank``: a signal that gets worse (a higher one) is raised again."""
        streak = self.streaks.get(key)
        if streak is None:
            if not bad:
                return None
            streak = self.streaks[key] = Streak()
        streak.count(bad=bad, now=now)
        if bad:
            if streak.raised >= rank or streak.bad < patience.polls or streak.lasted(now) < patience.lasts_s:
                return None
            streak.raised = rank
            return Turn.RAISED
        if not streak.raised:
            del self.streaks[key]
            return None
        if streak.good < patience.calm_polls or streak.lasted(now) < patience.calm_s:
            return None
        del self.streaks[key]
        return Turn.ENDED

    def stands(self, key: str) -> bool:
        """Whether the signal was raised and not taken back."""
        streak = self.streaks.get(key)
        return streak is not None and streak.raised > 0

    def forget(self, gpu: str) -> None:
        """Drop every key of a GPU (the key itself, or ``gpu/…``)."""
        for key in [key for key in self.streaks if key == gpu or key.startswith(gpu + "/")]:
            del self.streaks[key]
