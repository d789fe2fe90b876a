"""What several controllers on one PostgreSQL tell each other: who decides, what there is to decide, who was seen.

The lease is a row. Whoever decides holds it in a *term*, and every transaction of a decision first locks the row
against a change of term, and looks at it (``fence``): once another has taken the lease, nothing of the old holder can
be committed, however late it wakes. Renewing does not touch that lock, so a slow transaction costs no lease.
Times are the database's: the clocks of controllers need not agree.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec
from sqlalchemy import delete, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.store.records import Answer
from controller.store.tables import inbox, lease, sightings
from vocab.errors import Deposed, Unreachable

NOW: Any = func.extract("epoch", func.clock_timestamp())
LOCK_MS = 500  # how long a new holder waits for the row
GIVEN_UP = 0.0  # when a lease was renewed that nobody holds
HELD_S = 10.0  # a lease that was renewed less long ago may be in use
KEPT_S = 30.0  # sightings, and answers that nobody fetched
UNREAD = "it cannot be read"  # so begins why a row was put aside that a newer version may read
MOST = 256  # rows of the inbox in one turn

# A holder that was stopped in the middle of a transaction keeps its locks for as long as it is stopped.
_END_STALE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND datname = current_database()
  AND extract(epoch FROM clock_timestamp() - xact_start) > :older_s
  AND pid IN (SELECT pid FROM pg_locks WHERE relation = CAST('lease' AS regclass))
"""


class Lease(msgspec.Struct, frozen=True):
    """Who decides. ``renewed``: when it last was, by the database's clock, of which nothing else is known."""

    holder: str
    term: int
    renewed: float

    @property
    def is_given_up(self) -> bool:
        """Whether nobody holds it: nobody ever did, or the last one has resigned."""
        return self.renewed == GIVEN_UP


async def look(connection: AsyncConnection) -> Lease:
    """The lease as it stands."""
    row = (await connection.execute(select(lease.c.holder, lease.c.term, lease.c.renewed))).one()
    return Lease(row.holder, row.term, float(row.renewed))


async def end_stale(connection: AsyncConnection, older_s: float) -> int:
    """End the sessions that have held a lock on the lease for so long; how many."""
    return len((await connection.execute(text(_END_STALE), {"older_s": older_s})).all())


async def take(connection: AsyncConnection, holder: str, seen: Lease) -> int | None:
    """Take the lease if it still is as it was ``seen``; the new term, or None if somebody was quicker."""
    await connection.execute(text(f"SET LOCAL lock_timeout = {LOCK_MS}"))
    row = (await connection.execute(select(lease.c.term, lease.c.renewed).with_for_update())).one()
    if (seen.term, seen.renewed) != (row.term, row.renewed):
        return None
    taken = update(lease).values(holder=holder, term=row.term + 1, renewed=NOW)
    await connection.execute(taken)
    return int(row.term) + 1


async def renew(connection: AsyncConnection, term: int) -> bool:
    """Whether we still hold it. Not synced: after a crash of the database it only seems older than it is."""
    await connection.execute(text("SET LOCAL synchronous_commit = off"))
    return (await connection.execute(update(lease).where(lease.c.term == term).values(renewed=NOW))).rowcount == 1


async def resign(connection: AsyncConnection, term: int) -> None:
    """Let the next one have it at once."""
    await connection.execute(update(lease).where(lease.c.term == term).values(renewed=GIVEN_UP))


async def fence(connection: AsyncConnection, term: int | None) -> None:
    """Make sure that nobody else decides before this transaction ends. Raises Deposed if somebody does."""
    mine = select(lease.c.term).where(lease.c.term == term).with_for_update(read=True, key_share=True)
    if term is None or (await connection.execute(mine)).one_or_none() is None:
        raise Deposed("another controller decides now; ask again")


# -- the inbox ----------------------------------------------------------------------------------------------


class Post(msgspec.Struct, frozen=True):
    """A row of the inbox. ``age_s``: since it was posted."""

    id: int
    body: str
    age_s: float = 0.0


async def post(connection: AsyncConnection, posts: Iterable[tuple[str, str]]) -> None:
    """Add these (key, body)."""
    await connection.execute(insert(inbox).values(at=NOW), [{"key": key, "body": body} for key, body in posts])


async def waiting(connection: AsyncConnection, most: int = MOST) -> list[Post]:
    """What nobody has thought about yet, oldest first."""
    age = (NOW - inbox.c.at).label("age")
    query = select(inbox.c.id, inbox.c.body, age).where(inbox.c.answer.is_(None), inbox.c.failed.is_(None))
    found = await connection.execute(query.order_by(inbox.c.id).limit(most))
    return [Post(row.id, row.body, float(row.age)) for row in found]


async def settle(connection: AsyncConnection, taken: Sequence[int], answers: Sequence[Answer]) -> None:
    """Take these out and answer those; one that was withdrawn meanwhile undoes the whole transaction."""
    done = 0
    if taken:
        done += (await connection.execute(delete(inbox).where(inbox.c.id.in_(taken)))).rowcount
    for answer in answers:
        mine = update(inbox).where(inbox.c.id == answer.id, inbox.c.answer.is_(None))
        done += (await connection.execute(mine.values(answer=answer.text))).rowcount
    if done != len(taken) + len(answers):
        raise Unreachable("an order was withdrawn while it was thought about; what came with it is taken up again")


async def put_aside(connection: AsyncConnection, row: int, why: str) -> None:
    """Keep a row that cannot be thought about, and go on without it."""
    await connection.execute(update(inbox).where(inbox.c.id == row).values(failed=why))


async def failed(connection: AsyncConnection) -> int:
    """How many rows are put aside."""
    aside = select(func.count()).select_from(inbox).where(inbox.c.failed.is_not(None))
    return int((await connection.execute(aside)).scalar_one())


async def forget_failed(connection: AsyncConnection, kept_s: float) -> int:
    """Delete the rows that were put aside so long ago that nobody looks at them any more; how many there were."""
    old = delete(inbox).where(inbox.c.failed.is_not(None), inbox.c.at < NOW - kept_s)
    return (await connection.execute(old)).rowcount


async def answers(connection: AsyncConnection, keys: Collection[str]) -> dict[str, str]:
    """The answers to what was posted under these keys, each given once."""
    there = delete(inbox).where(inbox.c.key.in_(keys), inbox.c.answer.is_not(None))
    return {row.key: row.answer for row in await connection.execute(there.returning(inbox.c.key, inbox.c.answer))}


async def withdraw(connection: AsyncConnection, key: str) -> bool:
    """Take back what nobody has answered; False if it is too late for that."""
    mine = delete(inbox).where(inbox.c.key == key, inbox.c.answer.is_(None))
    return (await connection.execute(mine)).rowcount == 1


# -- sightings ----------------------------------------------------------------------------------------------


class Sighting(msgspec.Struct, frozen=True):
    """What a controller saw in a while: a row of its own."""

    controller: str
    number: int
    body: str


async def sight(connection: AsyncConnection, seen: Sighting) -> None:
    """Add a row, and drop what is old, whoever's it is."""
    await connection.execute(insert(sightings).values(at=NOW, **msgspec.to_builtins(seen)))
    await connection.execute(delete(sightings).where(sightings.c.at < NOW - KEPT_S))
    await connection.execute(delete(inbox).where(inbox.c.answer.is_not(None), inbox.c.at < NOW - KEPT_S))


async def sighted(connection: AsyncConnection, beside: str, known: dict[str, int], young_s: float) -> list[Sighting]:
    """Rows of all but ``beside`` that are younger than ``young_s`` and newer than the ``known`` numbers, in order."""
    keys = select(sightings.c.controller, sightings.c.number)
    keys = keys.where(sightings.c.controller != beside, sightings.c.at > NOW - young_s)
    found = (await connection.execute(keys.order_by(sightings.c.at))).all()
    news = []
    for row in found:
        if row.number > known.get(row.controller, 0):
            mine = (sightings.c.controller == row.controller, sightings.c.number == row.number)
            body = (await connection.execute(select(sightings.c.body).where(*mine))).scalar_one()
            news.append(Sighting(row.controller, row.number, body))
    return news
