"""Writes down: items and memory as one record of the spool, on disk in time. Critical ones at once."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence

from agent.spool import Spool
from vocab.errors import SpoolFull
from vocab.events import Severity
from vocab.messages import EventItem, FenceItem, Item

log = logging.getLogger(__name__)

GROUP_S = 0.1  # how long items that are not critical may wait for a common fsync


class Scribe:
    """Appends to the spool and syncs it in a thread, so that a slow disk does not stop the loop."""

    def __init__(self, spool: Spool, failed: Callable[[str], None]) -> None:
        self._spool = spool
        self._failed = failed
        self._timer: asyncio.TimerHandle | None = None
        self._soon = GROUP_S
        self._tasks: set[asyncio.Task[None]] = set()

    def record(self, items: Sequence[Item], state: bytes) -> None:
        """Add one record. A disk that takes no more is said and counted; the items are sent all the same."""
        try:
            self._spool.append(items, state)
        except SpoolFull as error:
            self._failed("spool")
            log.error("%s", error)
        if items:
            self._sync_within(0.0 if any(is_critical(item) for item in items) else GROUP_S)

    def _sync_within(self, delay_s: float) -> None:
        if self._timer is not None and self._soon <= delay_s:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._soon = delay_s
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._sync)

    def _sync(self) -> None:
        self._timer = None
        task = asyncio.ensure_future(self._flush())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _flush(self) -> None:
        try:
            await self._spool.flush()
        except OSError as error:
            self._failed("spool")
            log.error("spool: cannot sync", extra={"error": str(error)})

    async def close(self, state: bytes) -> None:
        """Write the last state, put all on disk and let go of it."""
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.gather(*self._tasks)
        with contextlib.suppress(SpoolFull):
            self._spool.append([], state)
        self._spool.close()


def is_critical(item: Item) -> bool:
    """Whether the item must be on disk before anything else happens."""
    if isinstance(item, EventItem):
        return item.event.severity is Severity.CRITICAL
    return isinstance(item, FenceItem)
