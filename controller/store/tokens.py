"""The tokens on disk: their digests, what they may, and how they ended."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.store.records import Audit
from controller.store.tables import audit, tokens
from vocab.roles import Role


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """One token. Times are seconds since the epoch; ``used_at``: when a one-time token was traded."""

    id: str
    name: str
    role: Role
    node: str | None = None
    digest: str
    made_at: float
    made_by: str
    expires_at: float | None = None
    used_at: float | None = None
    revoked_at: float | None = None
    changed: float

    def counts(self, now: float) -> bool:
        """Whether its bearer is let in at ``now``."""
        return self.revoked_at is None and self.used_at is None and (self.expires_at is None or now < self.expires_at)


async def mark(connection: AsyncConnection) -> tuple[object, ...]:
    """What is another after every change: counted, for the stamps are of clocks that need not agree."""
    counted = (func.count(), func.count(tokens.c.revoked_at), func.count(tokens.c.used_at), func.max(tokens.c.changed))
    return tuple((await connection.execute(select(*counted).select_from(tokens))).one())


async def all_tokens(connection: AsyncConnection) -> list[Token]:
    """Every token."""
    found = await connection.execute(select(tokens))
    return [Token(**{**row, "role": Role(row["role"])}) for row in found.mappings()]


async def put(connection: AsyncConnection, given: Sequence[Token]) -> None:
    """Store these as they are now."""
    await connection.execute(delete(tokens).where(tokens.c.id.in_([token.id for token in given])))
    await connection.execute(tokens.insert(), [msgspec.to_builtins(token) for token in given])


async def spend(connection: AsyncConnection, token: Token) -> bool:
    """Use up a one-time token; False if it was used, or revoked, before."""
    fresh = (tokens.c.id == token.id) & tokens.c.used_at.is_(None) & tokens.c.revoked_at.is_(None)
    done = await connection.execute(update(tokens).where(fresh).values(used_at=token.used_at, changed=token.changed))
    return done.rowcount == 1


async def note(connection: AsyncConnection, entry: Audit) -> None:
    """Write down who did it, in the same transaction."""
    await connection.execute(audit.insert(), [msgspec.to_builtins(entry)])
