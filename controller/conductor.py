"""The one task that thinks: it feeds stimuli to the Core in order and stores what the Core concludes.

A turn takes everything that waits, asks the Core, and commits all of it in one transaction; only then are
callers answered, lines published and nodes told. If the transaction fails, the Core has run ahead of the
disk: it is thrown away and built again from the store, and the callers are told to come again. So a
decision exists for others only once it is on disk, and a kill at any moment loses nothing acknowledged.
"""

import asyncio
import logging
import time
from collections.abc import Sequence

import msgspec

from controller.core.stimuli import AnyStimulus
from controller.core.views import OwnerOrder, View
from controller.export import Export
from controller.mind import Mind
from controller.steady import SteadyTime
from controller.store.change import Change
from controller.store.records import Audit
from controller.store.store import Store
from controller.watch import Watch
from vocab.clock import Clock
from vocab.errors import CorralError, Unreachable
from vocab.lines import AnyLine
from vocab.messages import Batch
from wire.backoff import delay_s

log = logging.getLogger(__name__)

GROUP = 256  # callers in one transaction: a commit's cost is its sync, not its rows
RECORDS = 500  # ... unless they bring much: past this a transaction grows no cheaper by the row, only longer
VIEW_WAIT_S = 5.0  # for a transaction under way; one takes milliseconds
RECOVER_MOST_S = 5.0  # readiness and agents notice a freed disk soon
IDLE_TICK_S = 0.02  # least time between two ticks, should a deadline not move


class Submission:
    """Something to think about and store, and who waits for it: a batch, or what else is told to the Core."""

    def __init__(
        self, *, batch: Batch | None = None, stimuli: Sequence[AnyStimulus] = (), audit: Audit | None = None
    ) -> None:
        self.batch = batch
        self.stimuli = stimuli
        self.audit = audit
        self.lines: list[AnyLine] = []
        self.stored: asyncio.Future[list[AnyLine]] = asyncio.get_running_loop().create_future()

    @property
    def records(self) -> int:
        """How many spool records it brings."""
        return len(self.batch.items) if self.batch is not None else 0

    def succeed(self) -> None:
        """It is on disk."""
        if not self.stored.done():
            self.stored.set_result(self.lines)

    def fail(self, error: CorralError) -> None:
        """It is not on disk; the caller may come again."""
        if not self.stored.done():
            self.stored.set_exception(error)


class Conductor:
    """Owner of the Core. ``submit`` gives it work; ``view`` shows the fleet as the disk has it."""

    def __init__(self, store: Store, mind: Mind, watch: Watch, clock: Clock, export: Export) -> None:
        self._store = store
        self.mind = mind
        self._watch = watch
        self._steady = SteadyTime(clock)
        self._export = export
        self._queue: asyncio.Queue[Submission] = asyncio.Queue()
        self._settled = asyncio.Event()  # the Core is as the disk has it: it may be looked at
        self._started = asyncio.Event()
        self._view: View | None = None
        self._drawn = False  # it shows the last turn
        self._lookers = 0  # who waits for a turn's end to see
        self._down: str | None = "starting: the stored history is being read"
        self.seq = 0

    @property
    def ready(self) -> tuple[bool, str]:
        """Whether batches are taken, and why not."""
        return (self._down is None, self._down or "ok")

    async def has_started(self) -> None:
        """Wait until batches are taken for the first time."""
        await self._started.wait()

    async def submit(self, submission: Submission) -> list[AnyLine]:
        """Have it thought about; the lines that it led to, once they are on disk. Raises Unreachable."""
        if self._down is not None:
            raise Unreachable(self._down)
        self._queue.put_nowait(submission)
        return await submission.stored

    async def view(self) -> View:
        """The fleet as of the last turn that is on disk. Raises Unreachable if there has been none."""
        if self._down is None and not self._settled.is_set():
            self._lookers += 1  # the turn under way draws it at its end: under load the next one begins at once
            try:
                async with asyncio.timeout(VIEW_WAIT_S):
                    await self._settled.wait()
            except TimeoutError:
                log.warning("a turn has taken longer than %g s", VIEW_WAIT_S)
            finally:
                self._lookers -= 1
        view = self.look()
        if view is None:
            raise Unreachable(self._down or "the store does not answer")
        return view

    def look(self) -> View | None:
        """The fleet as last seen on disk, without waiting; None if it never was."""
        if self._settled.is_set() and not self._drawn:
            self._draw()
        return self._view

    def _draw(self) -> None:
        self._view, self._drawn = self.mind.view(), True

    def orders(self) -> tuple[OwnerOrder, ...]:
        """What managers and owners are asked to do, as the disk has it; nothing while that is not known."""
        return self.mind.core.orders() if self._down is None and self._settled.is_set() else ()

    async def run(self) -> None:
        """Think until cancelled."""
        await self._recover()
        while True:
            taken = await self._next()
            try:
                await self._turn(taken)
            except Unreachable as error:
                log.error("the store refused a transaction: %s", error)
                self._export.store_failed()
                await self._fall(taken, error)
            except Exception:  # an error of the Core itself must not stop the fleet's ingest
                log.exception("the Core failed; it is built again from the store")
                self._export.core_failed()
                await self._fall(taken, Unreachable("the controller could not process this; its log says why"))

    async def _next(self) -> list[Submission]:
        """All that waits, up to a group; empty when a deadline of the Core has come."""
        taken: list[Submission] = []
        deadline = self.mind.core.next_deadline()
        wait_s = None if deadline is None else max(IDLE_TICK_S, deadline - self._steady.now())
        try:
            async with asyncio.timeout(wait_s):
                taken.append(await self._queue.get())
        except TimeoutError:
            return taken
        records = taken[0].records
        while len(taken) < GROUP and records < RECORDS and not self._queue.empty():
            taken.append(self._queue.get_nowait())
            records += taken[-1].records
        return taken

    async def _turn(self, taken: Sequence[Submission]) -> None:
        now = self._steady.now()
        self._settled.clear()
        behind = [each.batch for each in taken if each.batch is not None and self.mind.is_behind(each.batch)]
        if behind:
            log.warning(
                "nodes know of orders that the database does not: it was restored or is new; a new epoch begins"
            )
            await self.mind.renew(behind, now)
        for submission in taken:
            await self._hear(submission, now)
        self.mind.tick(now)
        await self._commit(now)
        for submission in taken:
            submission.succeed()

    async def _hear(self, submission: Submission, now: float) -> None:
        if submission.batch is None:
            submission.lines = self.mind.told(submission.stimuli, submission.audit, now)
            return
        batch = submission.batch
        if self.mind.wants_facts(batch):  # what it saw cannot be understood yet, so it keeps it and comes again
            batch = msgspec.structs.replace(batch, items=())
        records = await self.mind.new_records(batch)
        submission.lines = self.mind.hear(batch, records, now)
        self._export.records(len(records), len(batch.items) - len(records))

    async def _commit(self, now: float) -> None:
        write = self.mind.write(now)
        if not write.empty:
            began = time.perf_counter()
            self.seq = await self._store.commit(write)
            self._export.committed(time.perf_counter() - began, write.lines)
        self.mind.settle(write)
        self._drawn = False
        if self._lookers:
            self._draw()
        self._settled.set()
        first = self.seq - len(write.lines) + 1
        self._watch.publish([Change(seq, line) for seq, line in enumerate(write.lines, first)])

    async def _fall(self, taken: Sequence[Submission], error: Unreachable) -> None:
        """Refuse all that waits, and come back once the store takes writes."""
        self._down = str(error)
        waiting = [*taken]
        while not self._queue.empty():
            waiting.append(self._queue.get_nowait())
        for submission in waiting:
            submission.fail(error)
        await self._recover()

    async def _recover(self) -> None:
        """Build the Core from the store and store what a start leads to; try until it works."""
        attempt = 0
        while True:
            try:
                if not self._settled.is_set():
                    self.seq = await self.mind.rebuild(self._steady.now())
                    self._drawn = False
                    self._settled.set()
                await self._store.probe()
                await self._turn([])
            except Unreachable as error:
                attempt += 1
                self._down = str(error)
                self._export.store_up(up=False)
                await asyncio.sleep(delay_s(attempt, "store", most_s=RECOVER_MOST_S))
            else:
                self._down = None
                self._started.set()
                self._export.store_up(up=True)
                return
