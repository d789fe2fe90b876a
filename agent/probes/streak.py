"""A run of equal samples: how persistent a soft signal is, per GPU."""

import msgspec

NEEDED = 3  # polls in a row before a soft signal counts: one poll can hit a change of clocks


class Streak(msgspec.Struct):
    """How often in a row the signal was bad, or good after it was raised; when it was last bad."""

    bad: int = 0
    good: int = 0
    raised: int = 0  # rank of the severity that was raised, plus one; 0 is none
    last_bad: float = 0.0

    def count(self, *, bad: bool, now: float) -> None:
        """Take one sample in. A sample that is missing is not counted at all."""
        if bad:
            self.bad, self.good, self.last_bad = self.bad + 1, 0, now
        else:
            self.bad, self.good = 0, self.good + 1
