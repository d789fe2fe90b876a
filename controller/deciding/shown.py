"""What the outside sees of the fleet: the view as of the last turn that is on disk, and whether batches are taken."""

import asyncio
import logging
import time
from collections.abc import Sequence

from controller.core.fleet.views import View
from controller.deciding.mind import Mind
from controller.store.change import Change
from controller.telling.export import Export
from controller.telling.watch import Watch
from vocab.errors import Unreachable

log = logging.getLogger(__name__)

VIEW_WAIT_S = 5.0  # for a transaction under way; one takes milliseconds
DRAW_S = 0.05  # between two strokes
STROKE = 100  # nodes: some milliseconds, and twice as many a second as 12,500 nodes report in
KEPT_S = 1.0  # age of a picture that nobody looks at, at least, ...
SHARE = 0.01  # ... and of the time what it may take: what is shown while the store is out


class Shown:
    """Set by whoever thinks or follows; read by everybody."""

    def __init__(self, mind: Mind, watch: Watch, export: Export) -> None:
        self._mind = mind
        self._watch = watch
        self._export = export
        self._view: View | None = None
        self._drawn = False  # it shows the last turn
        self._due = 0.0  # monotonic seconds: when it is drawn anew though nobody looks
        self._lookers = 0  # who waits for a turn's end to see
        self.settled = asyncio.Event()  # the Core is as the disk has it: it may be looked at
        self.down: str | None = "starting: the stored history is being read"

    async def view(self) -> View:
        """The fleet as of the last turn that is on disk. Raises Unreachable if there has been none."""
        if self.down is None and not self.settled.is_set():
            self._lookers += 1  # the turn under way draws it at its end: under load the next one begins at once
            try:
                async with asyncio.timeout(VIEW_WAIT_S):
                    await self.settled.wait()
            except TimeoutError:
                log.warning("a turn has taken longer than %g s", VIEW_WAIT_S)
            finally:
                self._lookers -= 1
        view = self.look()
        if view is None:
            raise Unreachable(self.down or "the store does not answer")
        return view

    def look(self) -> View | None:
        """The fleet as last seen on disk, without waiting; None if it never was."""
        if self.settled.is_set() and not self._drawn:
            self._draw()
        return self._view

    def _draw(self) -> None:
        began = time.monotonic()
        self._view, self._drawn = self._mind.view(), True
        took = time.monotonic() - began
        self._due = began + max(KEPT_S, took / SHARE)

    async def draw(self) -> None:
        """Draw beside all else, a little at a time: 12,500 nodes at once would be a second in which nothing is read.

        Now and then all of it is kept, for who looks first when the store is out.
        """
        while True:
            await asyncio.sleep(DRAW_S)
            if self.settled.is_set():
                self._mind.core.draw(STROKE)
                if not self._drawn and time.monotonic() >= self._due:
                    self._draw()

    def show(self, news: Sequence[Change] = ()) -> None:
        """The Core is as the disk has it; these lines are new there."""
        self._drawn = False
        if self._lookers:
            self._draw()
        self.settled.set()
        self._watch.publish(news)

    def stale(self) -> None:
        """Something was heard outside a turn: whoever looks next sees it."""
        self._drawn = False

    def open(self) -> None:
        """Batches are taken."""
        self.down = None
        self._export.store_up(up=True)

    def close(self, error: Unreachable) -> None:
        """The store takes none, and says why."""
        self.down = str(error)
        self._export.store_up(up=False)
