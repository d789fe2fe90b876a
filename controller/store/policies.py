"""The policies that were adopted, each once and for good: the last one is in force. A revert is another adoption."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.core.fleet.adoption import Adoption
from controller.core.fleet.pinned import Pinned
from controller.core.fleet.settings import Settings
from controller.store.tables import policies

FOLLOWS = frozenset({"shadowed", "kept"})


def as_row(adoption: Adoption) -> dict[str, Any]:
    """The row of ``policies``."""
    return {
        "number": adoption.number,
        "version": adoption.version,
        "at": adoption.at,
        "actor": adoption.actor,
        "reason": adoption.reason,
        "content": adoption.content,
        "settings": _stored(adoption.settings),
        "pinned": msgspec.json.encode(adoption.pinned).decode(),
        "reverts": adoption.reverts,
    }


def _stored(settings: Settings) -> str:
    """What it asks for, without what follows from the catalogue of whoever reads it: they may be of another version."""
    asked = msgspec.to_builtins(settings)
    return msgspec.json.encode({name: value for name, value in asked.items() if name not in FOLLOWS}).decode()


async def last_number(connection: AsyncConnection) -> int | None:
    """The number of the one that is in force; None before the first start."""
    number: int | None = (await connection.execute(select(func.max(policies.c.number)))).scalar_one()
    return number


async def last(connection: AsyncConnection) -> Adoption:
    """The one that is in force."""
    return (await adoptions(connection, limit=1))[0]


async def adoptions(connection: AsyncConnection, *, before: int | None = None, limit: int = 100) -> list[Adoption]:
    """The latest ones (of those before a number), the last one first."""
    query = select(policies).order_by(policies.c.number.desc()).limit(limit)
    if before is not None:
        query = query.where(policies.c.number < before)
    return _adoptions((await connection.execute(query)).mappings().all())


async def adoption(connection: AsyncConnection, number: int) -> Adoption | None:
    """One of them."""
    found = _adoptions((await connection.execute(select(policies).where(policies.c.number == number))).mappings().all())
    return found[0] if found else None


async def content_of(connection: AsyncConnection, version: str) -> str | None:
    """The content that was last adopted under this name; None if it is free."""
    query = select(policies.c.content).where(policies.c.version == version).order_by(policies.c.number.desc()).limit(1)
    content: str | None = (await connection.execute(query)).scalar_one_or_none()
    return content


def _adoptions(rows: Sequence[Any]) -> list[Adoption]:
    return [
        Adoption(
            number=row["number"],
            version=row["version"],
            at=row["at"],
            actor=row["actor"],
            reason=row["reason"],
            content=row["content"],
            settings=msgspec.json.decode(row["settings"], type=Settings),
            pinned=msgspec.json.decode(row["pinned"], type=dict[str, Pinned]),
            reverts=row["reverts"],
        )
        for row in rows
    ]
