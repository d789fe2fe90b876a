"""Memory for a step ran out: smaller steps, not an end. Pure.

Nothing of a step that failed has been booked, so its tokens are simply computed again, in smaller steps. After a
while without trouble the steps grow again. When not even a step of one token has room, there is nothing left to shed.
"""

CALM_STEPS = 256  # without trouble, before steps grow again


class StepBudget:
    """How many tokens a step may compute now; ``full`` when all is well."""

    def __init__(self, full: int) -> None:
        self.full = full
        self.now = full
        self._calm = 0

    def shrink(self) -> bool:
        """A step found no memory: halve the budget. False if it cannot become smaller."""
        self._calm = 0
        if self.now <= 1:
            return False
        self.now //= 2
        return True

    def went_well(self) -> None:
        """A step found its memory."""
        if self.now == self.full:
            return
        self._calm += 1
        if self._calm >= CALM_STEPS:
            self._calm = 0
            self.now = min(self.full, self.now * 2)
