"""Something to think about and store, and who waits for it."""

import asyncio
from collections.abc import Sequence

from controller.core.fleet.stimuli import AnyStimulus
from controller.store.records import Audit
from vocab.errors import CorralError
from vocab.lines import AnyLine
from vocab.messages import Batch


class Submission:
    """A batch, or what else is told to the Core: an order of a person (with its ``audit``), or what an observer saw.

    ``row``: of the inbox, if another controller posted it: that it thought about it is stored with what it led to.
    """

    def __init__(
        self,
        *,
        batch: Batch | None = None,
        stimuli: Sequence[AnyStimulus] = (),
        audit: Audit | None = None,
        row: int | None = None,
    ) -> None:
        self.batch = batch
        self.stimuli = stimuli
        self.audit = audit
        self.row = row
        self.lines: list[AnyLine] = []
        self.stored: asyncio.Future[list[AnyLine]] = asyncio.get_running_loop().create_future()

    @property
    def records(self) -> int:
        """How many spool records it brings."""
        return len(self.batch.items) if self.batch is not None else 0

    def succeed(self) -> None:
        """It is on disk."""
        if not self.stored.done():
            self.stored.set_result(self.lines)

    def fail(self, error: CorralError) -> None:
        """It is not on disk; the caller may come again."""
        if self.row is None and not self.stored.done():
            self.stored.set_exception(error)
