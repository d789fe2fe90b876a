"""The store's reading side: each question that a restart or the API asks, as one function.

All take a connection of ``Store.reading`` and see one consistent view of the database.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import Select, and_, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.store import change
from controller.store.change import Change, subject_text
from controller.store.records import Addresses, Audit, Position
from controller.store.tables import (
    addresses,
    audit,
    changes,
    counters,
    desired,
    nodes,
    positions,
    received,
    standing,
)
from vocab.lines import ActionLine, AnyLine, EventLine, IncidentLine, StateLine
from vocab.messages import Desired, NodeFacts

OPENING = 4  # the condition that opens an incident stands a line or two before it
PAGE = 500  # rows read at a time where all are wanted: enough for speed, little enough for memory


async def counter(connection: AsyncConnection, name: str) -> int:
    """The value of ``seq`` (the last change), ``turn``, ``pruned`` (the last that is gone), ``events`` or ``epoch``."""
    found = await connection.execute(select(counters.c.value).where(counters.c.name == name))
    return int(found.scalar_one())


async def counts(connection: AsyncConnection) -> dict[str, int]:
    """All counters."""
    return {row.name: row.value for row in await connection.execute(select(counters))}


async def changes_after(connection: AsyncConnection, seq: int, *, limit: int = PAGE) -> list[Change]:
    """The next changes after ``seq``, in order."""
    return await _changes(connection, select(changes.c.seq, changes.c.line).where(changes.c.seq > seq).limit(limit))


async def actions_between(connection: AsyncConnection, seq: int, until: int, *, limit: int = PAGE) -> list[Change]:
    """The next lines of actions after ``seq``, up to ``until``, in order; few among many, and no other is decoded."""
    of_actions = changes.c.kind.concat("") == "action"  # by the range of numbers, not by the index of all actions
    query = select(changes.c.seq, changes.c.line).where(changes.c.seq > seq, changes.c.seq <= until, of_actions)
    return await _changes(connection, query.limit(limit))


async def all_changes(connection: AsyncConnection, seq: int = 0) -> AsyncIterator[Change]:
    """Every stored change after ``seq``, in order."""
    while page := await changes_after(connection, seq):
        for each in page:
            yield each
        seq = page[-1].seq


async def node_facts(connection: AsyncConnection, after: int = -1) -> list[NodeFacts]:
    """What each node last said of itself, by name; those that were written after turn ``after``."""
    found = await connection.execute(select(nodes.c.body).where(nodes.c.turn > after))
    facts = [msgspec.json.decode(body, type=NodeFacts) for body in found.scalars()]
    return sorted(facts, key=lambda each: each.node)  # here: databases sort by their own rules


async def node_positions(connection: AsyncConnection) -> list[Position]:
    """How far each node's spool has been stored."""
    found = await connection.execute(select(positions))
    return [Position(row.node, row.session, row.position) for row in found]


async def node_addresses(connection: AsyncConnection, after: int = -1) -> list[Addresses]:
    """Where the replicas of each node last answered, as far as it was written after turn ``after``."""
    found = await connection.execute(select(addresses).where(addresses.c.turn > after))
    return [Addresses(row.node, msgspec.json.decode(row.body, type=dict[str, str])) for row in found]


async def highest_positions(connection: AsyncConnection) -> dict[str, int]:
    """The highest position of each node's spool that is stored, whichever session sent it."""
    query = select(received.c.node, func.max(received.c.position).label("highest")).group_by(received.c.node)
    return {row.node: row.highest for row in await connection.execute(query)}


async def desired_of_nodes(connection: AsyncConnection, after: int = -1) -> list[Desired]:
    """What each node was last told, as far as it was written after turn ``after``."""
    found = await connection.execute(select(desired.c.body).where(desired.c.turn > after))
    return [msgspec.json.decode(body, type=Desired) for body in found.scalars()]


async def digests(connection: AsyncConnection, node: str, first: int, last: int) -> dict[int, str]:
    """The digests of a node's spool records from position ``first`` to ``last`` that are stored."""
    wanted = select(received.c.position, received.c.digest).where(
        received.c.node == node, received.c.position.between(first, last)
    )
    return {row.position: row.digest for row in await connection.execute(wanted)}


async def latest(
    connection: AsyncConnection, kind: str, *, finished: bool | None = None, limit: int = 100
) -> list[Change]:
    """The last line of each thing of this kind, the latest ``limit`` of them, the most recent at the end."""
    query = select(standing.c.seq, standing.c.line).where(standing.c.kind == kind)
    if finished is not None:
        query = query.where(standing.c.finished == finished)
    found = (await connection.execute(query.order_by(standing.c.seq.desc()).limit(limit))).all()
    return [Change(row.seq, change.decode(row.line)) for row in reversed(found)]


async def standing_line(connection: AsyncConnection, kind: str, key: str) -> AnyLine | None:
    """The last line of one thing, or None if it is not known."""
    query = select(standing.c.line).where(standing.c.kind == kind, standing.c.key == key)
    found = (await connection.execute(query)).scalar_one_or_none()
    return None if found is None else change.decode(found)


async def audits(connection: AsyncConnection, *, limit: int = 100) -> list[Audit]:
    """The latest orders of people, the most recent at the end."""
    query = select(audit).order_by(audit.c.id.desc()).limit(limit)
    found = (await connection.execute(query)).all()
    return [Audit(row.at, row.actor, row.act, row.subject, row.reason, row.outcome) for row in reversed(found)]


async def incident_lines(connection: AsyncConnection, incident: str) -> list[Change]:
    """One incident's story in order: its lines, its events, its conditions, and the replicas it moved."""
    return await _stories(connection, {incident}, also=None)


async def gpu_lines(connection: AsyncConnection, gpu: str) -> list[Change]:
    """One GPU's story in order: all lines about it, the whole stories of its incidents, and who came and went."""
    mine = await _changes(connection, select(changes).where(changes.c.gpu == gpu))
    incidents = {name for each in mine if (name := change.incident_of(each.line))}
    named = select(standing.c.key, standing.c.line).where(standing.c.kind == "incident")
    ids = {each.line.event.id for each in mine if isinstance(each.line, EventLine)}
    for row in await connection.execute(named):
        line = change.decode(row.line)
        if isinstance(line, IncidentLine) and (line.root in ids or ids.intersection(line.events)):
            incidents.add(row.key)
    guests = await _guests(connection, gpu)
    states = and_(changes.c.kind == "state", changes.c.subject.in_(guests))
    return await _stories(connection, incidents, also=or_(changes.c.gpu == gpu, states))


async def _guests(connection: AsyncConnection, gpu: str) -> set[str]:
    """The replicas that were started or found on a GPU, as subjects."""
    placed = select(standing.c.line).where(standing.c.kind.in_(("action", "state")), standing.c.line.contains(gpu))
    lines = [change.decode(line) for line in (await connection.execute(placed)).scalars()]
    return {
        subject_text(line.subject)
        for line in lines
        if isinstance(line, ActionLine | StateLine) and line.target is not None and gpu in line.target.gpus
    }


async def _stories(connection: AsyncConnection, incidents: set[str], also: Any) -> list[Change]:
    own = await _changes(connection, select(changes).where(changes.c.incident.in_(incidents)))
    wanted: list[Any] = [changes.c.incident.in_(incidents)]
    ids = {
        event for each in own if isinstance(each.line, IncidentLine) for event in (each.line.root, *each.line.events)
    }
    if ids:
        wanted.append(and_(changes.c.kind == "event", changes.c.key.in_(ids)))
    if own:
        wanted.append(_moved(own))
    if also is not None:
        wanted.append(also)
    return await _changes(connection, select(changes).where(or_(*wanted)))


def _moved(own: Sequence[Change]) -> Any:
    """Conditions and states of what an incident is about and moves (GPUs, replicas), while the incident lasts."""
    told = {subject_text(each.line.subject) for each in own if isinstance(each.line, IncidentLine | ActionLine)}
    closed = any(isinstance(each.line, IncidentLine) and each.line.state == "closed" for each in own)
    during = [changes.c.seq >= own[0].seq - OPENING, *([changes.c.seq <= own[-1].seq] if closed else [])]
    return and_(changes.c.kind.in_(("condition", "state")), changes.c.subject.in_(told), *during)


async def _changes(connection: AsyncConnection, query: Select[Any]) -> list[Change]:
    found = await connection.execute(query.order_by(changes.c.seq))
    return [Change(row.seq, change.decode(row.line)) for row in found]
