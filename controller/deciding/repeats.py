"""Which spool records are new. The wire is at-least-once; the store knows each record once.

A record is known by its node, position and digest. The digest matters when a node's spool began anew
(its disk was replaced): then the positions return, with other content, and those records are new.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import msgspec

from controller.store import read
from controller.store.records import Position, Received
from controller.store.store import Store
from vocab.messages import Batch, Item, Sequenced


def digest(item: Item) -> str:
    """16 hex digits over what a record holds."""
    return blake2b(msgspec.json.encode(item), digest_size=8).hexdigest()


class Repeats:
    """How far each node's spool is stored. A turn's additions count once ``settle`` is called."""

    def __init__(self, positions: Sequence[Position] = (), highest: Mapping[str, int] | None = None) -> None:
        self._stored = {position.node: position for position in positions}
        self._highest = dict(highest or {})  # of each node, whatever the session: above it, all is new
        self._turn: dict[str, Position] = {}
        self._turn_records: dict[tuple[str, int], str] = {}

    def acknowledged(self, node: str, session: str) -> int:
        """The highest position on our disk that this session of the node's agent has sent; 0 if none."""
        stored = self._stored.get(node)
        return stored.position if stored is not None and stored.session == session else 0

    async def new_records(self, store: Store, batch: Batch) -> list[Sequenced]:
        """The batch's records that have never been stored, in their order."""
        if not batch.items:
            return []
        known: dict[int, str] = {}
        if batch.items[0].position <= self._highest.get(batch.node, 0):
            async with store.reading() as connection:
                known = await read.digests(connection, batch.node, batch.items[0].position, batch.items[-1].position)
        return [record for record in batch.items if self._is_new(batch.node, record, known)]

    def _is_new(self, node: str, record: Sequenced, known: dict[int, str]) -> bool:
        mark = digest(record.item)
        if mark in (known.get(record.position), self._turn_records.get((node, record.position))):
            return False
        self._turn_records[(node, record.position)] = mark
        return True

    def advance(self, batch: Batch) -> Position | None:
        """Note in this turn how far the batch brings its node; None if it carries no records."""
        if not batch.items:
            return None
        before = self._turn.get(batch.node) or self._stored.get(batch.node)
        reached = batch.items[-1].position
        if before is not None and before.session == batch.session:
            reached = max(reached, before.position)  # a batch that a slow network delivered late
        position = Position(batch.node, batch.session, reached)
        self._turn[batch.node] = position
        return position

    def received(self) -> list[Received]:
        """The records that this turn adds."""
        return [Received(node, position, mark) for (node, position), mark in self._turn_records.items()]

    def settle(self) -> None:
        """The turn is on disk."""
        self._stored.update(self._turn)
        for node, position in self._turn_records:
            self._highest[node] = max(position, self._highest.get(node, 0))
        self.forget()

    def forget(self) -> None:
        """The turn is not on disk: as if it had not been."""
        self._turn.clear()
        self._turn_records.clear()
