"""The durable outbox: what the controller has not confirmed yet, and what the agent must not forget.

Append-only segment files of records with a checksum. One record holds the items of one observation *and*
the state that came with them (the judge's folds, read positions, fences), so a crash at any byte keeps
both or neither. Positions rise by one for the life of the spool. Only what is on disk is sent; what is
confirmed is deleted by whole segments. Over its limit the spool folds the revisions of one event into the
last, then drops the oldest of the least severe, and counts them.

It must not know what the state means, nor to whom the items go. All methods belong to one thread.
"""

import asyncio
import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from agent.segment import MOST_BYTES, SUFFIX, Ack, Entry, Head, Record, Segment, frame, name, read
from vocab.errors import SpoolFull
from vocab.events import Severity
from vocab.messages import ClearedItem, EventItem, Item, Sequenced
from wire.disk import sync_folder

log = logging.getLogger(__name__)

LIMIT_BYTES = 16 * 2**20  # weeks of folded events of a sick node
AFTER_FOLD = 0.8  # of the limit: what is left after dropping, so that the next item does not drop again
_ITEM = msgspec.json.Decoder(Item)


class Pending(msgspec.Struct, frozen=True):
    """One item that waits: its position, how bad it is, the event it revises, and its JSON."""

    position: int
    rank: int
    event: str | None
    raw: bytes


class Spool:
    """Open it on a folder of its own; what an earlier process left there is taken over."""

    def __init__(self, folder: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        self._folder = folder
        self._limit = limit_bytes
        self._pending: dict[int, Pending] = {}
        self._next = 1
        self._acked = 0
        self._synced = 0
        self._waiting_bytes = 0
        self.state: bytes | None = None
        self.dropped = 0
        folder.mkdir(parents=True, exist_ok=True)
        self._segments = self._load()
        self._start()

    # -- what it holds ----------------------------------------------------------------------------------

    @property
    def depth(self) -> int:
        """Items that are not confirmed."""
        return len(self._pending)

    @property
    def size_bytes(self) -> int:
        """Bytes on disk."""
        return sum(segment.size for segment in self._segments)

    @property
    def last(self) -> int:
        """The highest position that was ever given."""
        return self._next - 1

    @property
    def dirty(self) -> bool:
        """Whether some item is not on disk yet."""
        return self._synced < self.last

    def pending(self, most: int = 500, most_bytes: int = 2**19) -> tuple[Sequenced, ...]:
        """The oldest items that are on disk and not confirmed, up to a number and a size."""
        batch: list[Sequenced] = []
        size = 0
        for waiting in self._pending.values():
            size += len(waiting.raw)
            if waiting.position > self._synced or len(batch) >= most or (batch and size > most_bytes):
                break
            batch.append(Sequenced(waiting.position, _ITEM.decode(waiting.raw)))
        return tuple(batch)

    # -- what changes it --------------------------------------------------------------------------------

    def append(self, items: Sequence[Item], state: bytes | None = None) -> None:
        """Add items and the state after them as one record; not on disk before ``sync`` or ``flush``.

        Raises SpoolFull if the disk takes no more; the items are kept in memory all the same.
        """
        fresh = [_pending(self._next + offset, item) for offset, item in enumerate(items)]
        entry = Entry(tuple((waiting.position, waiting.raw) for waiting in fresh), state)
        try:
            self._write(entry)
        finally:
            self._next += len(fresh)
            for waiting in fresh:
                self._hold(waiting)
            self.state = state if state is not None else self.state
        if self._waiting_bytes > self._limit:
            self._shrink()
        elif self.size_bytes > self._limit + MOST_BYTES:
            self._rewrite()

    def ack(self, position: int) -> None:
        """The controller has everything up to ``position``, of what it was sent, on its disk."""
        position = min(position, self._synced)
        if position <= self._acked:
            return
        self._acked = position
        for done in [waiting for waiting in self._pending if waiting <= position]:
            self._waiting_bytes -= len(self._pending.pop(done).raw)
        self._write(Ack(position))
        while len(self._segments) > 1 and self._segments[0].last <= position:
            self._segments.pop(0).delete()

    def skip(self, position: int) -> None:
        """Give one item up that the controller refuses for good, and count it as dropped."""
        refused = self._pending.pop(position, None)
        if refused is not None:
            self._waiting_bytes -= len(refused.raw)
            self.dropped += 1
            self._rewrite()

    def sync(self) -> None:
        """Wait until all is on disk."""
        self._segments[-1].sync()
        self._synced = self.last

    async def flush(self) -> None:
        """Wait, in a thread, until all that was appended so far is on disk."""
        reached, handle = self.last, self._segments[-1].twin()
        try:
            await asyncio.to_thread(os.fsync, handle)
        finally:
            os.close(handle)
        self._synced = max(self._synced, reached)

    def close(self) -> None:
        """Put all on disk and let go of the files."""
        self.sync()
        self._segments[-1].close()

    # -- inside -----------------------------------------------------------------------------------------

    def _load(self) -> list[Segment]:
        """Read what is there; a torn tail is cut off, a damaged segment ends at its damage."""
        segments: list[Segment] = []
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            raw = path.read_bytes()
            records, good = read(raw)
            if not records:
                path.unlink()
                continue
            if good < len(raw):
                log.warning("spool: a torn record was cut off", extra={"file": path.name, "bytes": len(raw) - good})
            if isinstance(records[0], Head) and records[0].base:
                self._pending.clear()
                for stale in segments:
                    stale.delete()
                segments.clear()
            segments.append(Segment(path, self._replay(records), good))
        self._pending = {p: waiting for p, waiting in sorted(self._pending.items()) if p > self._acked}
        self._waiting_bytes = sum(len(waiting.raw) for waiting in self._pending.values())
        self._synced = self.last
        return segments

    def _replay(self, records: Iterable[Record]) -> int:
        """Take the records of one segment in; the highest position among them."""
        last = 0
        for record in records:
            match record:
                case Head():
                    self._next, self._acked = max(self._next, record.next), max(self._acked, record.acked)
                    self.dropped, self.state = record.dropped, record.state
                case Entry():
                    for position, raw in record.items:
                        self._pending[position] = _pending(position, _ITEM.decode(raw))
                        self._next, last = max(self._next, position + 1), max(last, position)
                    self.state = record.state if record.state is not None else self.state
                case Ack():
                    self._acked = max(self._acked, record.position)
        return last

    def _start(self) -> None:
        """Go on in the last segment, or in a first one."""
        if not self._segments:
            self._add_segment(base=False)
            return
        self._segments[-1].open()
        self._segments[-1].sync()

    def _add_segment(self, *, base: bool, items: tuple[tuple[int, bytes], ...] = ()) -> None:
        """Begin a segment that stands alone; it appears under its name whole or not at all."""
        number = self._segments[-1].number + 1 if self._segments else 1
        last = max((position for position, _ in items), default=0)
        beside = Segment(self._folder / f".{number}", last)
        beside.open()
        beside.append(frame(Head(self._next, self._acked, self.dropped, self.state, base)))
        if items:
            beside.append(frame(Entry(items)))
        beside.sync()
        final = self._folder / name(number)
        beside.path.rename(final)
        beside.path = final
        sync_folder(self._folder)
        if self._segments:
            self._segments[-1].close()
        self._segments.append(beside)

    def _write(self, record: Record) -> None:
        """Append a record. A new segment's head says what was before it, so what it changes is noted after."""
        data = frame(record)
        try:
            if self._segments[-1].size + len(data) > MOST_BYTES and self._segments[-1].size > 0:
                self._roll()
            self._segments[-1].append(data)
        except OSError as error:
            raise SpoolFull(f"{self._folder}: cannot write: {error.strerror}; free some space on this disk") from error
        if isinstance(record, Entry) and record.items:
            self._segments[-1].last = record.items[-1][0]

    def _roll(self) -> None:
        self._segments[-1].sync()
        self._add_segment(base=False)
        while len(self._segments) > 1 and self._segments[0].last <= self._acked:
            self._segments.pop(0).delete()

    def _shrink(self) -> None:
        """Fold revisions of one event into the last; then drop the oldest of the least severe."""
        newest = {waiting.event: waiting.position for waiting in self._pending.values() if waiting.event}
        folded = [w for w in self._pending.values() if w.event is None or newest[w.event] == w.position]
        self._keep(folded)
        target = int(self._limit * AFTER_FOLD)
        by_worth = sorted(self._pending.values(), key=lambda waiting: (waiting.rank, waiting.position))
        victims: set[int] = set()
        size = self._waiting_bytes
        for waiting in by_worth:
            if size <= target or len(victims) + 1 >= len(by_worth):
                break
            victims.add(waiting.position)
            size -= len(waiting.raw)
        self.dropped += len(victims)
        self._keep([waiting for waiting in self._pending.values() if waiting.position not in victims])
        log.warning("spool: over its limit", extra={"dropped": len(victims), "kept": len(self._pending)})
        self._rewrite()

    def _keep(self, kept: list[Pending]) -> None:
        self._pending = {waiting.position: waiting for waiting in kept}
        self._waiting_bytes = sum(len(waiting.raw) for waiting in kept)

    def _rewrite(self) -> None:
        """One new segment with what still waits, in place of all others."""
        items = tuple((waiting.position, waiting.raw) for waiting in self._pending.values())
        try:
            self._add_segment(base=True, items=items)
        except OSError as error:
            raise SpoolFull(f"{self._folder}: cannot write: {error.strerror}; free some space on this disk") from error
        self._synced = self.last
        for old in self._segments[:-1]:
            old.delete()
        del self._segments[:-1]

    def _hold(self, waiting: Pending) -> None:
        self._pending[waiting.position] = waiting
        self._waiting_bytes += len(waiting.raw)


def _pending(position: int, item: Item) -> Pending:
    event = item.event.id if isinstance(item, EventItem) else None
    return Pending(position, _rank(item), event, msgspec.json.encode(item))


def _rank(item: Item) -> int:
    """How much it would hurt to lose the item."""
    if isinstance(item, EventItem):
        return item.event.severity.rank
    return Severity.ERROR.rank if isinstance(item, ClearedItem) else Severity.CRITICAL.rank
