"""Forget finished history that is old, a few rows at a time so that nobody waits for it.

What stands is never pruned, however old: open conditions and incidents with their evidence, holds, actions
under way, the last word on each subject, the orders that say where replicas live, and the newest token.
A restart needs those.
"""

from typing import Any

import msgspec
from sqlalchemy import and_, delete, exists, not_, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.store import change
from controller.store.store import Store
from controller.store.tables import audit, changes, counters, events, received, standing
from vocab.lines import ActionLine, ConditionLine, IncidentLine

BATCH = 500  # rows a transaction: some milliseconds
LATEST_KEPT = ("state", "note")  # kinds whose last line of a subject holds until the next one


class Kept(msgspec.Struct, frozen=True):
    """What must stay: events that prove something open, and the action with the newest token."""

    events: frozenset[str]
    action: str | None


async def prune(store: Store, before: float) -> int:
    """Delete what is finished and older than ``before`` (seconds since the epoch); how many rows went."""
    async with store.reading() as connection:
        kept = await _kept(connection)
    gone = 0
    for step in (_changes, _events, _audits, _received):
        while count := await step(store, before, kept):
            gone += count
    return gone


async def _kept(connection: AsyncConnection) -> Kept:
    query = select(standing.c.line, standing.c.finished).where(standing.c.kind.in_(("condition", "incident", "action")))
    proofs: set[str] = set()
    newest: tuple[tuple[int, ...], str | None] = ((), None)
    for row in await connection.execute(query):
        line = change.decode(row.line)
        if isinstance(line, ActionLine):
            newest = max(newest, (_token(line.token), line.id), key=lambda each: each[0])
        elif not row.finished and isinstance(line, ConditionLine | IncidentLine):
            proofs.update(line.events)
    return Kept(frozenset(proofs), newest[1])


def _token(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


async def _changes(store: Store, before: float, kept: Kept) -> int:
    same = and_(standing.c.kind == changes.c.kind, standing.c.key == changes.c.key)
    stands = exists().where(same, not_(standing.c.finished), standing.c.kind.not_in(LATEST_KEPT))
    last_word = exists().where(same, standing.c.kind.in_(LATEST_KEPT), standing.c.seq == changes.c.seq)
    proof = and_(changes.c.kind == "event", changes.c.key.in_(kept.events))
    token = and_(changes.c.kind == "action", changes.c.key == kept.action)
    old = (
        select(changes.c.seq)
        .where(changes.c.at < before, not_(or_(stands, last_word, proof, token)))
        .order_by(changes.c.seq)
        .limit(BATCH)
    )
    async with store.deciding() as connection:
        found = list((await connection.execute(old)).scalars())
        if found:
            await connection.execute(delete(changes).where(changes.c.seq.in_(found)))
            pruned = and_(counters.c.name == "pruned", counters.c.value < found[-1])
            await connection.execute(update(counters).where(pruned).values(value=found[-1]))
            lost = and_(standing.c.finished, not_(exists().where(changes.c.seq == standing.c.seq)))
            await connection.execute(delete(standing).where(lost))
    return len(found)


async def _events(store: Store, before: float, kept: Kept) -> int:
    return await _rows(store, events, events.c.at < before, events.c.id.not_in(kept.events))


async def _audits(store: Store, before: float, _: Kept) -> int:
    return await _rows(store, audit, audit.c.at < before)


async def _rows(store: Store, table: Any, *old: Any) -> int:
    ids = select(table.c.id).where(*old).limit(BATCH)
    async with store.deciding() as connection:
        return (await connection.execute(delete(table).where(table.c.id.in_(ids)))).rowcount


async def _received(store: Store, before: float, _: Kept) -> int:
    old = select(received.c.node, received.c.position).where(received.c.at < before).limit(BATCH)
    async with store.deciding() as connection:
        found = (await connection.execute(old)).all()
        for row in found:
            mine = and_(received.c.node == row.node, received.c.position == row.position)
            await connection.execute(delete(received).where(mine))
    return len(found)
