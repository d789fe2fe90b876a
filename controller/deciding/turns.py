"""The turns of the controller that decides: what waits is thought about and stored, one transaction a turn.

A turn takes everything that waits, asks the Core, and commits all of it in one transaction; only then are
callers answered, lines published and nodes told. If the transaction fails, the Core has run ahead of the
disk: it is thrown away and built again from the store, and the callers are told to come again. So a
decision exists for others only once it is on disk, and a kill at any moment loses nothing acknowledged.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence

import msgspec

from controller.deciding.ear import Ear
from controller.deciding.mind import Mind
from controller.deciding.shown import Shown
from controller.deciding.steady import SteadyTime
from controller.deciding.waiting import Waiting, wanted
from controller.several.inbox import answered
from controller.several.shared import Shared
from controller.several.submission import Submission
from controller.store.change import Change
from controller.store.form import Unreadable
from controller.store.store import Store, Unstorable
from controller.telling.export import Export
from vocab.errors import Deposed, Unreachable
from wire.backoff import delay_s

log = logging.getLogger(__name__)

GROUP = 256  # callers in one transaction: a commit's cost is its sync, not its rows
RECORDS = 500  # ... unless they bring much: past this a transaction grows no cheaper by the row, only longer
RECOVER_MOST_S = 5.0  # readiness and agents notice a freed disk soon
SLICE_S = 0.02  # of thinking at a time: so long at most, and a transaction, nobody else is answered
IDLE_TICK_S = 0.02  # least time between two ticks, should a deadline not move
LOOK_S = 0.2  # between two looks at what other controllers have heard


class Turns:
    """Owner of the Core while this controller decides. ``put`` gives it work."""

    def __init__(
        self, store: Store, mind: Mind, shown: Shown, steady: SteadyTime, export: Export, shared: Shared | None
    ) -> None:
        self._store = store
        self._mind = mind
        self._shown = shown
        self._steady = steady
        self._export = export
        self._shared = shared
        self._ear = Ear()
        self._waiting = Waiting()
        self._held: list[Submission] = []  # batches that must wait for what is before them in the inbox
        self._one_by_one = False  # something in the inbox makes the Core fail: it is looked for

    def put(self, submission: Submission) -> None:
        """Have it thought about in the next turn."""
        self._waiting.put(submission)

    def refuse(self, taken: Sequence[Submission], error: Unreachable) -> None:
        """Send away those and all that wait; they may come again."""
        waiting, self._held = [*taken, *self._held], []
        while some := self._waiting.take(GROUP, RECORDS):
            waiting += some
        for submission in waiting:
            submission.fail(error)

    async def run(self) -> None:
        """Think until cancelled. Raises Deposed, or Unreadable where another controller may be able to read it."""
        listening = asyncio.create_task(self._ear.run(self._was_deaf))
        try:
            await self._think()
        finally:
            listening.cancel()

    def _was_deaf(self, seconds: float) -> None:
        self._export.was_deaf(seconds)
        self._mind.was_deaf(seconds, self._steady.now())

    async def _think(self) -> None:
        await self._recover()
        while True:
            taken = await self._next()
            try:
                arrived = await self._arrived()
                taken = [*arrived, *self._in_order(taken)]
                await self._turn(taken)
            except asyncio.CancelledError:  # another one decides, and whoever waits here would wait for ever
                self.refuse(taken, Deposed("another controller decides now; ask again"))
                raise
            except Deposed as error:
                self.refuse(taken, error)
                raise
            except Unreachable as error:
                log.error("the store refused a transaction: %s", error)
                self._export.store_failed()
                if isinstance(error, Unstorable):
                    await self._look_for_cause(taken)
                await self._fall(taken, error)
            except Exception:  # an error of the Core itself must not stop the fleet's ingest
                log.exception("the Core failed; it is built again from the store")
                self._export.core_failed()
                await self._look_for_cause(taken)
                await self._fall(taken, Unreachable("the controller could not process this; its log says why"))

    async def _next(self) -> list[Submission]:
        """All that waits, up to a group; empty when a deadline of the Core has come."""
        if self._one_by_one:
            return []
        deadline = self._mind.core.next_deadline()
        wait_s = None if deadline is None else max(IDLE_TICK_S, deadline - self._steady.now())
        if self._shared is not None:
            look_s = IDLE_TICK_S if self._shared.inbox.has_more else LOOK_S
            wait_s = min(look_s, look_s if wait_s is None else wait_s)
        try:
            async with asyncio.timeout(wait_s):
                await self._waiting.some()
        except TimeoutError:
            return []
        return self._waiting.take(GROUP, RECORDS)

    async def _arrived(self) -> list[Submission]:
        """What has come by other controllers. It is older than what waits here, for it was acknowledged before."""
        if self._shared is None:
            return []
        for order in await self._shared.inbox.look():
            order.succeed()
        found = await self._shared.arrived(1 if self._one_by_one else GROUP)
        for node in self._shared.sightings.waited_for():
            self._mind.knock(node, self._steady.now())
        self._one_by_one = self._one_by_one and any(each.row is not None for each in found)
        return found

    def _in_order(self, taken: list[Submission]) -> list[Submission]:
        """What may be thought about after what has arrived: no batch while older ones may be in the inbox."""
        if self._shared is None:
            return taken
        held, self._held = wanted(self._held), []
        if not self._shared.inbox.has_more:
            return [*held, *taken]
        self._held = [*held, *(each for each in taken if each.batch is not None)]
        return [each for each in taken if each.batch is None]

    async def _turn(self, taken: Sequence[Submission]) -> None:
        now = self._steady.now()
        self._shown.settled.clear()
        behind = [each.batch for each in taken if each.batch is not None and self._mind.is_behind(each.batch)]
        if behind:
            await self._mind.renew(behind, now)
        began = time.perf_counter()
        for submission in taken:
            await self._hear(submission, now)
            if time.perf_counter() - began > SLICE_S:  # a storm, or a spool: heartbeats are heard between its reports
                await asyncio.sleep(0)
                now, began = self._steady.now(), time.perf_counter()
        if late_s := self._ear.listened():
            self._was_deaf(late_s)
        now = self._steady.now()
        self._mind.tick(now)
        await self._commit(taken, now)
        for submission in taken:
            submission.succeed()

    async def _hear(self, submission: Submission, now: float) -> None:
        if submission.batch is None:
            submission.lines = self._mind.told(submission.stimuli, submission.audit, now)
            return
        batch = submission.batch
        if submission.row is None and self._mind.wants_facts(batch):
            batch = msgspec.structs.replace(batch, items=())  # it cannot be understood yet: the node comes again
        records = await self._mind.new_records(batch)
        submission.lines = self._mind.hear(batch, records, now)
        self._export.records(len(records), len(batch.items) - len(records))

    async def _commit(self, taken: Sequence[Submission], now: float) -> None:
        done, answers = answered(taken)
        write = msgspec.structs.replace(self._mind.write(now), taken=done, answers=answers)
        if not write.empty:
            began = time.perf_counter()
            seq = await self._store.commit(write)
            self._export.committed(time.perf_counter() - began, write.lines)
            self._mind.seq = seq
        self._mind.settle(write)
        first = self._mind.seq - len(write.lines) + 1
        self._shown.show([Change(seq, line) for seq, line in enumerate(write.lines, first)])

    async def _look_for_cause(self, taken: Sequence[Submission]) -> None:
        """A row of the inbox that the Core fails on must not stop all others: alone in its turn, it is put aside."""
        posted = [each for each in taken if each.row is not None]
        if self._shared is None or not posted:
            return
        if self._one_by_one:
            with contextlib.suppress(Unreachable):  # the database is away: it comes up again
                await self._shared.inbox.put_aside(
                    posted[0], "it could not be thought about, or not stored: see the log"
                )
        self._one_by_one = True

    async def _fall(self, taken: Sequence[Submission], error: Unreachable) -> None:
        """Refuse all that waits, and come back once the store takes writes."""
        self._shown.close(error)
        self.refuse(taken, error)
        self._mind.is_warm = self._shown.settled.is_set()
        await self._recover()

    async def _recover(self) -> None:
        """Build the Core from the store and store what a start leads to; try until it works.

        Raises Deposed, or Unreadable where another controller may be able to read it.
        """
        attempt = 0
        while True:
            try:
                if not self._shown.settled.is_set():
                    await self._mind.resume(self._steady.now())
                    self._shown.show()
                await self._store.probe()
                await self._turn([])
            except Deposed:
                raise
            except Unreachable as error:
                if isinstance(error, Unreadable) and self._shared is not None:
                    raise  # another one may be able to: the lease is not for this one
                attempt += 1
                self._shown.close(error)
                self._mind.is_warm = self._shown.settled.is_set()
                await asyncio.sleep(delay_s(attempt, "store", most_s=RECOVER_MOST_S))
            else:
                self._shown.open()
                return
