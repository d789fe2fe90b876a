"""The stream of decision lines: each with its ``seq`` as SSE id, resumed without a gap, slow readers dropped.

A reader that comes back with ``Last-Event-ID`` first gets what the store holds after it, then goes on
live. If that id is older than the history that is kept, or newer than the database (it was restored), the
first event is ``gap``: fetch the fleet anew.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

import msgspec
from aiohttp import web

from controller.door.limits import STREAMS, too_many
from controller.store import read
from controller.store.change import KIND, Change
from controller.store.store import Store
from vocab.errors import InputError
from wire import sse

log = logging.getLogger(__name__)

BACKLOG = 2000  # lines that a reader may lag behind: an 8-GPU storm is under 100 lines a second
KEEP_ALIVE_S = 15.0  # proxies cut idle streams after 30 to 60 s
STREAM_S = 10  # after so many seconds another reader may have gone
WRITE_S = 20.0  # a reader that takes nothing for so long is gone


class Reader:
    """One open stream: the lines that it still has to be sent."""

    def __init__(self) -> None:
        self.pending: asyncio.Queue[Change] = asyncio.Queue(BACKLOG)
        self.dropped = False

    def offer(self, change: Change) -> None:
        """Add a line, or mark the reader as too slow."""
        try:
            self.pending.put_nowait(change)
        except asyncio.QueueFull:
            self.dropped = True


class Watch:
    """All open streams. ``publish`` never waits for any of them."""

    def __init__(self, on_drop: Callable[[], None] = lambda: None) -> None:
        self._readers: dict[Reader, asyncio.Task[None]] = {}
        self._closed = False
        self._on_drop = on_drop

    @property
    def readers(self) -> int:
        """How many streams are open."""
        return len(self._readers)

    def publish(self, changes: Iterable[Change]) -> None:
        """Hand committed lines to every stream."""
        for change in changes:
            for reader in self._readers:
                reader.offer(change)
        for reader, task in self._readers.items():
            if reader.dropped:
                self._on_drop()
                task.cancel()
        self._readers = {reader: task for reader, task in self._readers.items() if not reader.dropped}

    def close(self) -> None:
        """End all streams, so that the server can stop."""
        self._closed = True
        for task in self._readers.values():
            task.cancel()

    async def serve(self, request: web.Request, store: Store, current: int) -> web.StreamResponse:
        """Answer ``request`` with the stream; ``current`` is the last ``seq`` that was published."""
        last = _last_id(request)
        if len(self._readers) >= STREAMS:
            raise too_many(f"{STREAMS} streams are open, and there are no more", STREAM_S)
        reader = Reader()
        response = await sse.open_stream(request)
        pump = asyncio.create_task(_pump(response, store, reader, current if last is None else last))
        self._readers[reader] = pump
        if self._closed:
            pump.cancel()
        try:
            await asyncio.wait([pump])
            _report(pump)
        finally:
            self._readers.pop(reader, None)
            pump.cancel()
            if request.transport is not None:
                request.transport.abort()  # a slow reader's full buffer must not hold the server up
        return response


def _report(pump: "asyncio.Task[None]") -> None:
    error = None if pump.cancelled() else pump.exception()
    if error is not None and not isinstance(error, ConnectionResetError | TimeoutError):  # those: the reader went away
        log.warning("a stream of changes ended: %s", error)


def _last_id(request: web.Request) -> int | None:
    given = request.headers.get("Last-Event-ID") or request.query.get("after")
    if given is None:
        return None
    if not given.isdecimal() or len(given) > 18:
        raise InputError(f"Last-Event-ID (or after) is {given[:40]!r}: it must be the seq of a line, a whole number")
    return int(given)


async def _pump(response: web.StreamResponse, store: Store, reader: Reader, after: int) -> None:
    await _write(response, b": open\n\n")
    last = await _catch_up(response, store, after)
    while True:
        try:
            async with asyncio.timeout(KEEP_ALIVE_S):
                change = await reader.pending.get()
        except TimeoutError:
            await _write(response, b": alive\n\n")
            continue
        if change.seq > last:
            await _send(response, change)
            last = change.seq


async def _catch_up(response: web.StreamResponse, store: Store, after: int) -> int:
    """Send what the store holds after ``after``; the ``seq`` that was reached."""
    async with store.reading() as connection:
        newest = await read.counter(connection, "seq")
        pruned = await read.counter(connection, "pruned")
    if after > newest or after < pruned:
        async with asyncio.timeout(WRITE_S):
            await sse.send(response, msgspec.json.encode({"seq": newest}), event="gap", id=str(newest))
        return newest
    while True:
        async with store.reading() as connection:
            page = await read.changes_after(connection, after)
        if not page:
            return after
        for change in page:
            await _send(response, change)
        after = page[-1].seq


async def _send(response: web.StreamResponse, change: Change) -> None:
    async with asyncio.timeout(WRITE_S):
        await sse.send(response, msgspec.json.encode(change.line), event=KIND[type(change.line)], id=str(change.seq))


async def _write(response: web.StreamResponse, raw: bytes) -> None:
    async with asyncio.timeout(WRITE_S):
        await response.write(raw)
