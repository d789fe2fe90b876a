"""The ledger of cards: where each GPU has been, told from what nodes say of themselves, in the same transaction.

A GPU is known by its UUID, its board by the serial number, which several GPUs of one board share. A card that moves to
another node or slot keeps both, and with them its history. Absent is not gone: a card that its node lists no longer
has an end of its stay, and a new one once it is listed again.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any

import msgspec
from sqlalchemy import Table, and_, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.store.tables import cards, stays
from vocab.messages import NodeFacts
from vocab.observations import GpuIdentity

Put = Callable[[Table, Iterable[dict[str, Any]]], Awaitable[None]]

CHUNK = 1000  # names in one question: databases take some 32,000 parameters
BLANK = frozenset({"", "n/a", "[n/a]", "unknown"})  # what stands where a board has no serial number


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU: ``since`` it has been at ``node`` and ``pci``, ``until`` its node listed it no longer (None: it does).

    ``first``: when it was first seen. Times are seconds since the epoch.
    """

    uuid: str
    serial: str | None
    board: str | None
    first: float
    node: str
    pci: str
    since: float
    until: float | None


class Stay(msgspec.Struct, frozen=True, kw_only=True):
    """A time that a GPU spent in one slot of one node; ``until`` is None while it is there."""

    uuid: str
    node: str
    pci: str
    since: float
    until: float | None


def serial_of(identity: GpuIdentity) -> str | None:
    """The board's serial number; None where it says nothing."""
    text = (identity.serial or "").strip()
    return None if text.lower() in BLANK or not text.strip("0") else text


async def settle(connection: AsyncConnection, put: Put, told: Sequence[NodeFacts], now: float) -> None:
    """Store what these nodes tell of cards: only what came, moved or went is written."""
    if not told:
        return
    known = await _known(connection, told)
    ledger = _Ledger(known, now)
    for facts in told:
        ledger.take(facts)
    await put(stays, map(msgspec.structs.asdict, ledger.stays.values()))
    await put(cards, (msgspec.structs.asdict(ledger.known[uuid]) for uuid in ledger.changed))


class _Ledger:
    """The cards that these nodes have, had or tell of."""

    def __init__(self, known: dict[str, Card], now: float) -> None:
        self.known = known
        self.changed: dict[str, None] = {}
        self.stays: dict[tuple[str, float], Stay] = {}
        self._now = now
        self._at: dict[str, dict[str, None]] = {}
        for card in known.values():
            self._at.setdefault(card.node, {})[card.uuid] = None

    def take(self, facts: NodeFacts) -> None:
        listed = {identity.uuid for identity in facts.gpus}
        if facts.unknown_because is None:  # a node that can read no GPU says nothing of them
            for uuid in [uuid for uuid in self._at.get(facts.node, ()) if uuid not in listed]:
                self._end(self.known[uuid])
        for identity in facts.gpus:
            self._see(facts.node, identity)

    def _end(self, card: Card) -> None:
        if card.until is None:
            self._keep(msgspec.structs.replace(card, until=self._now))

    def _see(self, node: str, identity: GpuIdentity) -> None:
        card, serial = self.known.get(identity.uuid), serial_of(identity)
        if card is None:
            first, there = self._now, False
        else:
            first, there = card.first, (card.node, card.pci, card.until) == (node, identity.pci, None)
            serial = serial or card.serial
        if card is not None and not there:
            self._end(card)
            self._at.get(card.node, {}).pop(card.uuid, None)
        seen = Card(
            uuid=identity.uuid,
            serial=serial,
            board=identity.name or (card.board if card is not None else None),
            first=first,
            node=node,
            pci=identity.pci,
            since=card.since if card is not None and there else self._now,
            until=None,
        )
        self._at.setdefault(node, {})[seen.uuid] = None
        if seen != card:
            self._keep(seen)

    def _keep(self, card: Card) -> None:
        self.known[card.uuid] = card
        self.changed[card.uuid] = None
        stay = Stay(uuid=card.uuid, node=card.node, pci=card.pci, since=card.since, until=card.until)
        self.stays[card.uuid, card.since] = stay


async def _known(connection: AsyncConnection, told: Sequence[NodeFacts]) -> dict[str, Card]:
    nodes = dict.fromkeys(facts.node for facts in told)
    uuids = dict.fromkeys(identity.uuid for facts in told for identity in facts.gpus)
    found: dict[str, Card] = {}
    for some in _chunks(list(nodes)):
        there = and_(cards.c.node.in_(some), cards.c.until.is_(None))
        found |= {card.uuid: card for card in await _cards(connection, select(cards).where(there))}
    for some in _chunks([uuid for uuid in uuids if uuid not in found]):
        mine = select(cards).where(cards.c.uuid.in_(some))
        found |= {card.uuid: card for card in await _cards(connection, mine)}
    return found


def _chunks(names: list[str]) -> Iterable[list[str]]:
    return (names[first : first + CHUNK] for first in range(0, len(names), CHUNK))


async def _cards(connection: AsyncConnection, query: Any) -> list[Card]:
    return [Card(**row) for row in (await connection.execute(query)).mappings()]


async def cards_after(
    connection: AsyncConnection, place: str | None, limit: int, **wanted: str | None
) -> tuple[list[Card], str | None]:
    """At most ``limit`` GPUs by UUID after ``place`` that match, and the place of the next page, if any."""
    query = select(cards).order_by(cards.c.uuid).limit(limit + 1)
    for name, value in wanted.items():
        if value is not None:
            query = query.where(cards.c[name] == value)
    if place is not None:
        query = query.where(cards.c.uuid > place)
    found = await _cards(connection, query)
    return found[:limit], found[limit - 1].uuid if len(found) > limit else None


async def named(connection: AsyncConnection, name: str) -> list[Card]:
    """The GPUs of the board with this serial number, or the GPU with this UUID and those that share its board."""
    card = select(cards.c.serial).where(cards.c.uuid == name)
    query = select(cards).where(or_(cards.c.uuid == name, cards.c.serial == name, cards.c.serial.in_(card)))
    return await _cards(connection, query.order_by(cards.c.first, cards.c.uuid))


async def cards_of(connection: AsyncConnection, uuids: Collection[str]) -> list[Card]:
    """The GPUs with these UUIDs, a few."""
    return await _cards(connection, select(cards).where(cards.c.uuid.in_(uuids)))


async def places(connection: AsyncConnection, uuids: Collection[str], limit: int) -> list[Stay]:
    """Where these GPUs have been, the latest ``limit`` stays, the last one at the end."""
    query = select(stays).where(stays.c.uuid.in_(uuids)).order_by(stays.c.since.desc()).limit(limit)
    return [Stay(**row) for row in reversed((await connection.execute(query)).mappings().all())]
