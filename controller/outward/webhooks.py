"""Webhooks: each reads the stored changes behind the decisions, in order, and sends what is worth a notice.

At least once: its position moves on disk after a notice was taken. It reads the store by itself, so a receiver that is
slow or gone delays nothing but its own notices; these wait as long as the history is kept.
"""

import asyncio
import logging

import aiohttp
from sqlalchemy import insert, select, update

from controller.deciding.conductor import Conductor
from controller.notify.config import WebhookConfig
from controller.notify.notice import Notice, notice_of
from controller.notify.post import connector, post
from controller.notify.silence import is_silent
from controller.notify.template import load
from controller.store import read
from controller.store.store import Store
from controller.store.tables import counters
from controller.telling.export import Export
from vocab.clock import Clock
from vocab.errors import CorralError, InputError, Refused, Unreachable
from vocab.lines import AnyLine
from wire.backoff import delay_s

log = logging.getLogger(__name__)

LOOK_S = 0.5
MOST_WAIT_S = 300.0  # between two tries
PAGE = 200  # changes read at a time


class Webhook:
    """One receiver and its place in the history. Raises ConfigError if it cannot be used."""

    def __init__(self, config: WebhookConfig, conductor: Conductor, store: Store, clock: Clock, export: Export) -> None:
        self._config = config
        self._conductor = conductor
        self._store = store
        self._clock = clock
        self._export = export
        self._render = load(config.template)
        self._key = f"webhook:{config.name}"

    async def run(self) -> None:
        """Send until cancelled; only where this controller decides."""
        async with aiohttp.ClientSession(connector=connector(self._config)) as session:
            attempt = 0
            while True:
                try:
                    position = await self._position() if self._conductor.decides else None
                    while position is not None and self._conductor.decides:
                        position = await self._advance(session, position)
                        attempt = 0
                except Unreachable as error:
                    attempt += 1
                    log.warning("%s", error)
                    self._export.noticed(self._config.name, "failed")
                    await asyncio.sleep(error.retry_after_s + delay_s(attempt, self._key, most_s=MOST_WAIT_S))
                else:
                    await asyncio.sleep(LOOK_S)

    async def _position(self) -> int:
        """The last change that it has dealt with; a new webhook begins now, and tells nothing of what was."""
        async with self._store.reading() as connection:
            found = (await connection.execute(select(counters.c.value).where(counters.c.name == self._key))).scalar()
            newest = await read.counter(connection, "seq")
            pruned = await read.counter(connection, "pruned")
        if found is None:
            async with self._store.writing() as connection:
                await connection.execute(insert(counters).values(name=self._key, value=newest))
            return newest
        if found < pruned:
            log.error("webhook %s was behind for so long that notices are lost: history was pruned", self._config.name)
        return min(int(found), newest)

    async def _advance(self, session: aiohttp.ClientSession, position: int) -> int:
        """Deal with the next changes; the position then. Raises Unreachable."""
        if self._conductor.seq <= position:
            await asyncio.sleep(LOOK_S)
            return position
        async with self._store.reading() as connection:
            page = await read.changes_after(connection, position, limit=PAGE)
        for change in page:
            notice = notice_of(change.seq, change.line)
            wanted = notice is not None and (not self._config.events or notice.what in self._config.events)
            if notice is not None and wanted and not self._is_silent(change.line):
                await self._send(session, notice)
                await self._keep(change.seq)
        if page:
            await self._keep(page[-1].seq)
        return page[-1].seq if page else position

    def _is_silent(self, line: AnyLine) -> bool:
        """Whether people are at work on the node that it is about."""
        view = self._conductor.look()
        return view is not None and is_silent(view, line)

    async def _send(self, session: aiohttp.ClientSession, notice: Notice) -> None:
        try:
            await post(session, self._config, notice, self._render(notice), int(self._clock.now()))
        except (InputError, Refused) as error:  # to send it again would not change that: the next ones must not wait
            log.error("%s", error, extra={"notice": notice.key})
            self._export.noticed(self._config.name, "refused")
        except Unreachable:
            raise
        except CorralError as error:  # its secret cannot be read now
            raise Unreachable(f"webhook {self._config.name}: {error}") from error
        else:
            self._export.noticed(self._config.name, "sent")

    async def _keep(self, seq: int) -> None:
        async with self._store.writing() as connection:
            await connection.execute(update(counters).where(counters.c.name == self._key).values(value=seq))
