"""What the judgement of lemons looks at: 28 days of rollups, and which cards there are of each board."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Any

from sqlalchemy import and_, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.core.fleet.lemons import DEFAULT, WINDOW_S, Lemon, Tally, Thresholds, lemons, signals
from controller.store.rollup import DAY
from controller.store.tables import cards, rollups
from vocab.catalogue import codes
from vocab.events import Recovery

# what only a fault of the card asks for; the code of lemons itself is no reason for one
FAULTS = frozenset(
    code for code, row in codes.ROWS.items() if row.recovery.rank >= Recovery.DRAIN_AND_RESET.rank and code != "lemon"
)


async def judged(connection: AsyncConnection, now: float, thresholds: Thresholds = DEFAULT) -> list[Lemon]:
    """The cards with signals that count in the 28 days before ``now``, the worst first.

    It is weighed beside the loop: of 100,000 cards it takes seconds.
    """
    since = now - WINDOW_S
    columns = (rollups.c.gpu, rollups.c.start, rollups.c.measure, rollups.c.name, rollups.c.value)
    wanted = (
        rollups.c.span == DAY,
        rollups.c.start > since - DAY,
        or_(
            rollups.c.measure.in_(("hold", "repair")),
            and_(rollups.c.measure == "fault", rollups.c.name.in_(FAULTS)),  # of programs there are 40 times as many
        ),
        rollups.c.gpu != "",
    )
    rows = await connection.execute(select(*columns).where(*wanted))
    found = await asyncio.to_thread(_signals, rows.all())
    lately = or_(cards.c.until.is_(None), cards.c.until > since)
    counted = select(cards.c.board, func.count()).where(lately).group_by(cards.c.board)
    sizes = {row[0]: row[1] for row in await connection.execute(counted)}
    mine = select(cards.c.uuid, cards.c.board).where(cards.c.uuid.in_(select(rollups.c.gpu).where(*wanted)))
    boards = {row.uuid: row.board for row in await connection.execute(mine)}
    return await asyncio.to_thread(lemons, found, boards, sizes, thresholds)


def _signals(rows: Iterable[Any]) -> dict[str, Counter[str]]:
    return signals([Tally(*row) for row in rows], FAULTS)
