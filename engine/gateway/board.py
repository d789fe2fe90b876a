"""What the gateway knows now: the table, what is under way where, and a notice when something changes."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from engine.gateway.table import Listed, Routable, Standing, Table, merge, met, read, routable
from vocab.clock import Clock


class Board:
    """Owned by the event loop; ``on_change`` is called after each change of who is there or routable."""

    def __init__(self, clock: Clock, on_change: Callable[["Board"], None] = lambda _: None) -> None:
        self._clock = clock
        self._on_change = on_change
        self._changed = asyncio.Event()
        self.table = Table()
        self.informed = False  # somebody has told what replicas there are
        self.outstanding: Counter[str] = Counter()

    def now(self) -> float:
        """Monotonic seconds."""
        return self._clock.monotonic()

    def list(self, answer: Iterable[Listed]) -> None:
        """The controller, or the disk, told what replicas there are."""
        self.informed = True
        self._take(merge(self.table, answer, self.now()))

    def probed(self, replica: str, standing: Standing, began: float, resumes: str = "") -> None:
        """A probe that ``began`` then has ended."""
        self._take(read(self.table, replica, standing, began, self.now(), resumes))

    def met(self, replica: str, standing: Standing, *, lost: bool = False) -> None:
        """A request met the replica so."""
        self._take(met(self.table, replica, standing, self.now(), lost=lost))

    def standing(self, replica: str) -> Standing | None:
        """What the replica last showed; None if it is not known (any more)."""
        entry = self.table.entries.get(replica)
        return entry.standing if entry else None

    def routable(self, deployment: str) -> Routable:
        """What a request of this deployment may be sent to now."""
        return routable(self.table, deployment)

    @contextlib.contextmanager
    def carrying(self, replica: str) -> Iterator[None]:
        """Count a request as under way at this replica."""
        self.outstanding[replica] += 1
        try:
            yield
        finally:
            self.outstanding[replica] -= 1
            if not self.outstanding[replica]:
                del self.outstanding[replica]

    async def change(self, most_s: float | None = None) -> None:
        """Return at the next change, or after ``most_s``."""
        changed = self._changed
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                await changed.wait()

    def _take(self, table: Table) -> None:
        before, self.table = self.table, table
        if _shape(before) == _shape(table):
            return
        self._changed.set()
        self._changed = asyncio.Event()
        self._on_change(self)


def _shape(table: Table) -> dict[str, tuple[Listed, Standing]]:
    return {name: (entry.listed, entry.standing) for name, entry in table.entries.items()}
