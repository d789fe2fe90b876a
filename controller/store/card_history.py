"""What befell one board, wherever it was: faults, holds, repairs and what people said of them."""

from typing import Any

import msgspec
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.store import cards, change
from controller.store.cards import Card, Stay
from controller.store.rollup import DAY, TRIED
from controller.store.tables import changes, events, rollups
from vocab.events import Severity
from vocab.lines import ActionLine, HoldLine, NoteLine

INJECTED = '"injected":true'  # as ``msgspec`` writes it; within a text of the event its quotes would be escaped
MOST = 200  # of each part of one card's history, the latest


class Faults(msgspec.Struct, frozen=True):
    """How many events of a code the card had, and when the last of them began, in seconds since the epoch.

    As in rollups: what was injected, also by a drill, and what is only information is no fault.
    """

    code: str
    events: int
    last: float


class Total(msgspec.Struct, frozen=True):
    """A sum of daily rollups: of ``fault``, ``hold``, ``repair`` and ``verdict`` how many, of ``state`` seconds."""

    measure: str
    name: str
    value: float


class CardHistory(msgspec.Struct, frozen=True, kw_only=True):
    """One board: its GPUs, their places, and as far as history is kept, faults, holds, repairs and verdicts.

    ``totals``: of all days whose rollups are kept, which is longer.
    """

    gpus: list[Card]
    places: list[Stay]
    faults: list[Faults]
    totals: list[Total]
    holds: list[HoldLine]
    repairs: list[ActionLine]
    verdicts: list[NoteLine]


async def history(connection: AsyncConnection, found: list[Card]) -> CardHistory:
    """The history of the board that carries these GPUs. A repair of its node counts if it was for a fault of theirs."""
    uuids = [card.uuid for card in found]
    about = changes.c.gpu.in_(uuids)
    incidents = select(changes.c.incident).where(about, changes.c.incident.is_not(None))
    repairs = await _lines(connection, "action", changes.c.incident.in_(incidents))
    return CardHistory(
        gpus=found,
        places=await cards.places(connection, uuids, MOST),
        faults=await _faults(connection, uuids),
        totals=await _totals(connection, uuids),
        holds=await _lines(connection, "hold", about),
        repairs=[line for line in repairs if line.of in TRIED],
        verdicts=[line for line in await _lines(connection, "note", about) if line.right is not None],
    )


async def _faults(connection: AsyncConnection, uuids: list[str]) -> list[Faults]:
    counted = select(events.c.code, func.count(), func.max(events.c.at)).where(
        events.c.gpu.in_(uuids), events.c.severity > Severity.INFO.rank, ~events.c.body.contains(INJECTED)
    )
    rows = (await connection.execute(counted.group_by(events.c.code))).all()
    return sorted((Faults(*row) for row in rows), key=lambda each: (-each.events, each.code))


async def _totals(connection: AsyncConnection, uuids: list[str]) -> list[Total]:
    by = (rollups.c.measure, rollups.c.name)
    mine = (rollups.c.gpu.in_(uuids), rollups.c.span == DAY)
    rows = await connection.execute(select(*by, func.sum(rollups.c.value)).where(*mine).group_by(*by))
    return sorted((Total(*row) for row in rows), key=lambda each: (each.measure, -each.value, each.name))


async def _lines(connection: AsyncConnection, kind: str, about: Any) -> list[Any]:
    query = select(changes.c.line).where(changes.c.kind == kind, about).order_by(changes.c.seq.desc()).limit(MOST)
    return [change.decode(line) for line in reversed((await connection.execute(query)).scalars().all())]
