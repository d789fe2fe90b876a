"""Who decides, where several controllers share a database: a lease that is renewed, lost and taken over.

The lease says who may *try*. That nobody else's decisions are stored is the work of the fence in each transaction
(``store.shared``); so a leader that was stopped for an hour does no harm there.

What is done outside the database has no fence, so it rests on time, and on nobody's clock but one's own monotonic one:
the holder is sure for ``SURE_S`` from before it sent the renewal that went through, and another takes the lease once it
has itself seen it stand for the longer ``TTL_S``. What the database's clock shows, and how it steps, decides nothing.
"""

import asyncio
import contextlib
import logging

from controller.store import form, shared
from controller.store.store import Store
from vocab.clock import Clock
from vocab.errors import Unreachable

log = logging.getLogger(__name__)

RENEW_S = 0.75
TTL_S = 2.5  # three renewals: two may be late. A new leader decides within 5 s of the death of the last
SURE_S = 2.0  # shorter: clocks of machines run at the same rate to far better than a fifth
LOOK_S = 0.25


class Leader:
    """This controller's candidacy. ``term`` is None while another one decides."""

    def __init__(self, store: Store, name: str, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.name = name
        self.term: int | None = None
        self.holder = ""  # as last seen
        self.barred = False  # what is stored cannot be read here: the lease is for another
        self._renewed: float | None = None  # monotonic, of the last look at a lease that was young
        self._stood: tuple[shared.Lease, float] | None = (
            None  # the lease as another holds it, and since when, monotonic
        )

    @property
    def age_s(self) -> float | None:
        """How long ago the lease was renewed, as far as we know; None if it was never seen."""
        return None if self._renewed is None else self._clock.monotonic() - self._renewed

    @property
    def is_sure(self) -> bool:
        """Whether nobody else can have taken the lease meanwhile: what is done outside the database asks this first."""
        age_s = self.age_s
        return self.term is not None and age_s is not None and age_s < SURE_S

    async def campaign(self) -> None:
        """Return once this controller decides."""
        while self.term is None:
            try:
                await self._try()
            except Unreachable as error:
                log.debug("the lease cannot be read: %s", error)
            if self.term is None:
                await asyncio.sleep(LOOK_S)

    async def _try(self) -> None:
        async with self._store.noting() as connection:
            seen = await shared.look(connection)
            stood_s = self._stood_s(seen)
            may = not self.barred and await form.stored(connection) <= form.FORM
            free = may and (seen.is_given_up or stood_s >= TTL_S)
            stale = await shared.end_stale(connection, TTL_S) if free else 0
        self.holder, self._renewed = seen.holder, self._clock.monotonic() - stood_s
        if not free:
            return
        if stale:
            log.warning("%d sessions of a leader that stands still were ended", stale, extra={"leader": seen.holder})
        began = self._clock.monotonic()
        async with self._store.noting() as connection:
            term = await shared.take(connection, self.name, seen)
        if term is not None:
            self.term, self.holder, self._renewed = term, self.name, began
            log.warning("this controller decides now", extra={"term": term, "before": seen.holder})

    def _stood_s(self, seen: shared.Lease) -> float:
        """For how long we have seen it stand as it is: whoever holds it and lives renews it."""
        now = self._clock.monotonic()
        if self._stood is None or (self._stood[0].term, self._stood[0].renewed) != (seen.term, seen.renewed):
            self._stood = seen, now
        return now - self._stood[1]

    async def keep(self) -> None:
        """Renew the lease; return once another controller has it."""
        while self.term is not None:
            await asyncio.sleep(RENEW_S)
            began = self._clock.monotonic()
            try:
                async with self._store.noting() as connection:
                    held = await shared.renew(connection, self.term)
            except Unreachable as error:  # nobody else can take it either, or the fence will say so
                log.warning("the lease was not renewed: %s", error)
                continue
            if not held:
                log.warning("another controller decides now", extra={"term": self.term})
                self.term = None
                return
            self._renewed = began

    async def resign(self) -> None:
        """Let another one decide at once."""
        term, self.term = self.term, None
        if term is not None:
            with contextlib.suppress(Unreachable):
                async with self._store.noting() as connection:
                    await shared.resign(connection, term)
