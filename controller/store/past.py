"""A fleet's stored past, as a rehearsal plays it: what nodes said, in the order in which it happened."""

import msgspec
from msgspec.structs import replace
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.core.fleet.stimuli import Shaped
from controller.core.rehearsal import Past, Told
from controller.store import change, read
from controller.store.tables import changes, events
from vocab.events import Cleared, Event, Source, epoch_s, rfc3339
from vocab.lines import ConditionLine
from vocab.messages import ClearedItem, EventItem

MOST = 10_000  # events of one rehearsal, the latest: ten seconds of one core
OURS = frozenset({"node_unknown", "node_lost", "placement_black_hole"})  # events that the core itself concludes


async def past(connection: AsyncConnection, shape: Shaped, since: float, most: int = MOST) -> Past:
    """What was said since (seconds since the epoch), at most so many events, the latest."""
    query = select(events.c.body).where(events.c.at >= since).order_by(events.c.at.desc(), events.c.stored.desc())
    rows = (await connection.execute(query.limit(most))).scalars().all()
    said = [msgspec.json.decode(body, type=Event) for body in reversed(rows)]
    told = [Told(epoch_s(event.at), EventItem(_as_first_seen(event))) for event in said if event.at and _is_told(event)]
    if told:
        told += await _returned(connection, {event.id: event for event in said}, told[0].at)
    facts = tuple(await read.node_facts(connection))
    counted = select(func.count()).select_from(events).where(events.c.at >= since)
    stored = len(said) if len(said) < most else int((await connection.execute(counted)).scalar_one())
    return Past(facts=facts, shape=shape, told=tuple(sorted(told, key=lambda each: each.at)), stored=stored)


def _is_told(event: Event) -> bool:
    """Whether a node said it; what the controller concluded itself is concluded again."""
    return event.source is not Source.CORRAL or event.code not in OURS


def _as_first_seen(event: Event) -> Event:
    """The stored event is the last revision; it came in when it was first seen."""
    return replace(event, rev=1, last_at=event.at)


async def _returned(connection: AsyncConnection, said: dict[str, Event], since: float) -> list[Told]:
    """The signals that returned."""
    query = select(changes.c.line).where(changes.c.kind == "condition", changes.c.at >= since).order_by(changes.c.seq)
    found = []
    for text in (await connection.execute(query)).scalars():
        line = change.decode(text)
        event = said.get(line.events[-1]) if isinstance(line, ConditionLine) and line.events else None
        if isinstance(line, ConditionLine) and line.state == "cleared" and event is not None:
            found.append(Told(line.at, ClearedItem(_cleared(line, event))))
    return found


def _cleared(line: ConditionLine, event: Event) -> Cleared:
    return Cleared(
        at=rfc3339(line.at),
        node=event.node,
        boot_id=event.boot_id,
        gpu=event.gpu,
        device=line.device,
        code=line.code,
        by="signal",
        event=event.id,
        name=line.subject.replica,
    )
