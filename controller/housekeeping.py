"""What is done now and then, by APScheduler: rolling up and forgetting old history. Nothing that safety hangs on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobEvent
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from controller import garbage
from controller.lemons import Lemons
from controller.store import shared
from controller.store.prune import prune
from controller.store.rollup import forget, roll_up
from controller.store.store import Store
from controller.telling.export import Export
from vocab.clock import Clock
from vocab.errors import Unreachable

log = logging.getLogger(__name__)

DAY_S = 86_400.0
PRUNE_EVERY_S = 3600
ROLL_EVERY_S = 300
LEMONS_EVERY_S = 3600
GARBAGE_EVERY_S = DAY_S  # a second or two at 12,500 nodes, in which nothing else is done
_OUTCOMES = {EVENT_JOB_ERROR: "failed", EVENT_JOB_MAX_INSTANCES: "skipped", EVENT_JOB_MISSED: "missed"}


class Housekeeping:
    """The scheduler and its jobs."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        export: Export,
        keep_days: float,
        decides: Callable[[], bool],
        lemons: Lemons,
    ) -> None:
        self._store = store
        self._clock = clock
        self._export = export
        self._keep_s = keep_days * DAY_S
        self._lemons = lemons
        self._decides = decides  # of several controllers, one does the housekeeping
        self._one = asyncio.Lock()  # jobs follow each other
        # a grace of None: a job that a busy loop delays still runs; the library's default drops it after 1 s
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        defaults = {"misfire_grace_time": None, "coalesce": True, "max_instances": 1}
        self._scheduler = AsyncIOScheduler(timezone="UTC", job_defaults=defaults)
        self._scheduler.add_listener(self._count, EVENT_JOB_ERROR | EVENT_JOB_MAX_INSTANCES | EVENT_JOB_MISSED)

    def start(self) -> None:
        """Begin; the first run of each job is one period away."""
        self._scheduler.add_job(self.roll_up, "interval", seconds=ROLL_EVERY_S, id="rollup")
        self._scheduler.add_job(self.tell_lemons, "interval", seconds=LEMONS_EVERY_S, id="lemons")
        self._scheduler.add_job(self.prune, "interval", seconds=PRUNE_EVERY_S, id="prune")
        self._scheduler.add_job(self.collect, "interval", seconds=GARBAGE_EVERY_S, id="garbage")
        self._scheduler.start()

    def stop(self) -> None:
        """End; a job that runs is cancelled, and its transaction rolled back."""
        self._scheduler.shutdown(wait=False)

    async def roll_up(self) -> None:
        """Bring the hours and days of GPUs and deployments up to now."""
        await self._run("rollup", self._roll_up)

    async def tell_lemons(self) -> None:
        """Tell of the cards that are lemons."""
        await self._run("lemons", self._tell_lemons)

    async def prune(self) -> None:
        """Forget finished history older than the configured days, and rollups that are kept no longer."""
        await self._run("prune", self._prune)

    async def collect(self) -> None:
        """Free what has gone in circles since it was set aside."""
        log.debug("garbage was collected", extra={"objects": garbage.collect()})
        self._export.job("garbage", "done")

    async def _tell_lemons(self) -> None:
        self._export.lemons(await self._lemons.tell())

    async def _roll_up(self) -> None:
        await roll_up(self._store, self._clock.now())
        if self._store.database.shared:
            async with self._store.noting() as connection:
                self._export.inbox_failed(await shared.failed(connection))

    async def _prune(self) -> None:
        await self._roll_up()  # what is not rolled up must not go
        gone = await prune(self._store, self._clock.now() - self._keep_s)
        gone += await forget(self._store, self._clock.now())
        if self._store.database.shared:
            async with self._store.noting() as connection:
                gone += await shared.forget_failed(connection, self._keep_s)
        if gone:
            log.info("old history was pruned", extra={"rows": gone})

    async def _run(self, job: str, work: Callable[[], Awaitable[None]]) -> None:
        if not self._decides():
            return
        try:
            async with self._one:
                await work()
        except Unreachable as error:
            log.warning("the job %s was not finished: %s", job, error)
            self._export.job(job, "failed")
            return
        self._export.job(job, "done")

    def _count(self, event: JobEvent) -> None:
        self._export.job(str(event.job_id), _OUTCOMES[event.code])
