"""The form of what is stored, numbered: by it a controller knows that a newer version has decided here.

Whoever begins to decide marks the database with its own form (``mark``). A controller that meets a higher one may not
read right what is there, also where it can decode it: it neither decides nor shows anything, and says so. What an older
one wrote every newer one reads.

Raise ``FORM`` with each change of what lines, policies and orders hold that a released version would not understand: a
new kind, a new word of an enumeration, a new field that matters. A test holds it to the types.
"""

from typing import Any

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.store import shared
from controller.store.dialects import Database
from controller.store.tables import counters, inbox
from vocab.errors import Unreachable

FORM = 1
NAME = "form"


class Unreadable(Unreachable):
    """What is stored is of a newer version: this controller must be upgraded."""


def check(stored: int) -> None:
    """Raises Unreadable if that is above ours."""
    if stored > FORM:
        raise Unreadable(
            f"a newer version has decided on this database (form {stored}, this one knows {FORM}): upgrade this"
            " controller too; meanwhile it takes nothing in and decides nothing"
        )


async def stored(connection: AsyncConnection) -> int:
    """The highest form of who has decided here; 1 before forms were counted."""
    found = await connection.execute(select(counters.c.value).where(counters.c.name == NAME))
    number = found.scalar_one_or_none()
    return 1 if number is None else int(number)


async def mark(connection: AsyncConnection, database: Database) -> None:
    """This controller decides from now on: what an older one could not read of the inbox is taken up again."""
    before = await stored(connection)
    check(before)
    if before == FORM:
        return
    given: Any = database.insert(counters).values(name=NAME, value=FORM)
    await connection.execute(given.on_conflict_do_update(index_elements=["name"], set_={"value": FORM}))
    unread = inbox.c.failed.startswith(shared.UNREAD, autoescape=True)
    await connection.execute(update(inbox).where(unread).values(failed=None))
