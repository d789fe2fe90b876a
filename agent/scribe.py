"""Writes down: items and memory as one record of the spool, on disk in time. Critical ones at once."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from agent.spool import Spool
from vocab.errors import SpoolFull
from vocab.events import Severity
from vocab.messages import EventItem, FenceItem, Item

log = logging.getLogger(__name__)

GROUP_S = 0.1  # how long items that are not critical may wait for a common fsync


class Scribe:
    """Gathers what one turn of the event loop judged into one record with the memory after it.

    Critical items are written when the turn ends and synced at once, others within 100 ms. The sync runs in
    a thread, so that a slow disk does not stop the loop. ``wrote`` is called when items can be sent.
    """

    def __init__(
        self, spool: Spool, memory: Callable[[], bytes], wrote: Callable[[], None], failed: Callable[[str], None]
    ) -> None:
        self._spool = spool
        self._memory = memory
        self._wrote = wrote
        self._failed = failed
        self._items: list[Item] = []
        self._timer: asyncio.TimerHandle | None = None
        self._urgent = False
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, items: Sequence[Item]) -> None:
        """Write these soon; with none, the memory alone."""
        self._items += items
        urgent = any(is_critical(item) for item in items)
        if self._timer is not None and (self._urgent or not urgent):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._urgent = urgent
        self._timer = asyncio.get_running_loop().call_later(0.0 if urgent else GROUP_S, self.write)

    def write(self) -> None:
        """Write now what was added. A disk that takes no more is said and counted; items are sent all the same."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        items, self._items, self._urgent = self._items, [], False
        try:
            self._spool.append(items, self._memory())
        except SpoolFull as error:
            self._failed("spool")
            log.error("%s", error)
        if items:
            self._sync()
            self._wrote()

    def _sync(self) -> None:
        task = asyncio.ensure_future(self._flush())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _flush(self) -> None:
        try:
            await self._spool.flush()
        except OSError as error:
            self._failed("spool")
            log.error("spool: cannot sync", extra={"error": str(error)})

    async def close(self) -> None:
        """Write the last of it, put all on disk and let go."""
        self.write()
        await asyncio.gather(*self._tasks)
        self._spool.close()


def is_critical(item: Item) -> bool:
    """Whether the item must be on disk before anything else happens."""
    if isinstance(item, EventItem):
        return item.event.severity is Severity.CRITICAL
    return isinstance(item, FenceItem)
