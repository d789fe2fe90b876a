"""At every quarantine a bundle is written, beside the decisions and never before them.

It reads the stored changes in order, as webhooks do, and keeps its place in the store: of several controllers the one
that decides writes, on its own disk. What a node could not give is asked for again once that is back.
"""

import asyncio
import contextlib
import logging
from typing import NamedTuple

from sqlalchemy import insert, select, update

from controller.deciding.conductor import Conductor
from controller.evidence.parts import Missing, Parts
from controller.evidence.shelf import Bundle, Shelf, poured
from controller.evidence.tar import packed
from controller.notify.notice import bundle_of, subject_name
from controller.store import read
from controller.store.store import Store
from controller.store.tables import counters
from controller.telling.export import Export
from vocab.clock import Clock
from vocab.errors import Unreachable
from vocab.lines import ActionLine
from vocab.states import NodeState
from wire.backoff import delay_s

log = logging.getLogger(__name__)

LOOK_S = 1.0
PAGE = 200  # changes read at a time
KEEP_EVERY = 5000  # changes without a quarantine: its place is not worth a transaction each second
KEY = "bundles"
AGAIN_FIRST_S, AGAIN_MOST_S = 30.0, 3600.0  # between two tries of one that waits for a node
TRIES = 30  # of one: about a day


class About(NamedTuple):
    """What a bundle is of."""

    id: str
    of: str
    incident: str | None
    subject: str
    at: float
    order: str


class Shelving:
    """The loop over quarantines, and over the bundles that lack something."""

    def __init__(
        self,
        conductor: Conductor,
        store: Store,
        parts: Parts,
        shelf: Shelf,
        clock: Clock,
        export: Export,
        look_s: float = LOOK_S,
    ) -> None:
        self._conductor = conductor
        self._store = store
        self._parts = parts
        self._shelf = shelf
        self._clock = clock
        self._export = export
        self._look_s = look_s
        self._at: int | None = None  # the last change that was dealt with, while this controller decides
        self._kept = 0  # the last that is kept: what comes after is looked at again after a restart

    async def run(self) -> None:
        """Write until cancelled; only where this controller decides."""
        while True:
            if self._conductor.decides:
                try:
                    await self._advance()
                    await self._again()
                except Unreachable as error:
                    log.warning("bundles: %s", error)
                except OSError as error:  # the disk: the place is kept, and it is tried again
                    log.error("a bundle cannot be written: %s", error)
                    self._export.bundled("failed")
                    await asyncio.sleep(AGAIN_FIRST_S)
            else:
                self._at = None  # another one goes on from where it was kept
            await asyncio.sleep(self._look_s)

    async def _advance(self) -> None:
        """Write a bundle for each quarantine since the last look. Raises Unreachable or OSError."""
        if self._at is None:
            self._at = self._kept = await self._position()
        until = self._conductor.seq
        while self._conductor.decides and self._at < until:
            async with self._store.reading() as connection:
                page = await read.actions_between(connection, self._at, until, limit=PAGE)
            for change in page:
                line = change.line
                name = bundle_of(line)
                if name is not None and isinstance(line, ActionLine):
                    of = line.incident or line.subject.gpu or subject_name(line.subject)
                    await self._write(About(name, of, line.incident, subject_name(line.subject), line.at, line.id), 1)
                    await self._keep(change.seq)
            self._at = page[-1].seq if len(page) == PAGE else until
        if until < self._at:  # the database was restored
            self._at = None
        elif self._at - self._kept > KEEP_EVERY:
            await self._keep(self._at)

    async def _again(self) -> None:
        """Pack anew what waits for nodes that are back. Raises Unreachable or OSError."""
        kept = await asyncio.to_thread(self._shelf.listed)
        self._export.bundles(sum(each.bytes for each in kept), self._shelf.most_bytes)
        waiting = [each for each in kept if each.waits_for]
        view = self._conductor.look() if waiting else None
        live = {each.node for each in (view.nodes if view is not None else ()) if each.state == NodeState.LIVE}
        for each in waiting:
            wait_s = delay_s(each.tries, each.id, first_s=AGAIN_FIRST_S, most_s=AGAIN_MOST_S)
            due = each.tries < TRIES and self._clock.now() >= each.packed_at + wait_s
            if due and live.intersection(each.waits_for):
                order = f"a-{each.id.removeprefix('b-')}"
                await self._write(About(each.id, each.of, each.incident, each.subject, each.at, order), each.tries + 1)

    async def _write(self, about: About, tries: int) -> None:
        missing = Missing()
        async with self._store.reading() as connection:
            if about.incident is not None:
                changes = await read.incident_lines(connection, about.incident)
            else:
                changes = await read.gpu_lines(connection, about.of)
        at = int(max((change.line.at for change in changes), default=0.0))
        parts = self._parts.of(about.of, changes, missing, take=about.order)
        part = await asyncio.to_thread(self._shelf.begin, about.id)
        try:
            size = await poured(packed(about.of, at, parts, missing.told), part)
            bundle = Bundle(
                id=about.id,
                of=about.of,
                incident=about.incident,
                subject=about.subject,
                at=about.at,
                packed_at=self._clock.now(),
                bytes=size,
                missing=tuple(missing.told),
                waits_for=tuple(missing.away),
                tries=tries,
            )
            await asyncio.to_thread(self._shelf.finish, part, bundle)
            self._export.bundled("written")
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
        told = {"bundle": about.id, "incident": about.incident, "bytes": size, "missing": len(missing.told)}
        log.warning("a bundle was written", extra=told)

    async def _position(self) -> int:
        """The last change that was dealt with; the first time it begins now, and packs nothing of what was."""
        async with self._store.reading() as connection:
            found = (await connection.execute(select(counters.c.value).where(counters.c.name == KEY))).scalar()
            newest = await read.counter(connection, "seq")
        if found is None:
            async with self._store.writing() as connection:
                await connection.execute(insert(counters).values(name=KEY, value=newest))
            return newest
        return min(int(found), newest)

    async def _keep(self, seq: int) -> None:
        self._kept = seq
        async with self._store.writing() as connection:
            await connection.execute(update(counters).where(counters.c.name == KEY).values(value=seq))
