"""Replicas that the site's own units run: the orders about them, each carried out once, through systemd.

Corral signals nobody: the root helper tells systemd, and only of units that root's configuration names. Several units
are looked after at a time; the orders for one replica come in their order.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence

import msgspec

from agent.executor.unit_book import Entry, Step, UnitBook
from agent.executor.unit_deeds import DEEDS
from agent.executor.unit_work import LOOK_S, Door, UnitWork
from agent.executor.work import Halted
from agent.roothelper.client import Helper
from vocab.clock import Clock
from vocab.errors import Refused, Unreachable
from vocab.messages import Order, ReplicaStatus
from vocab.states import NEEDED_LEVEL, ActionKind, ActionState, Level

log = logging.getLogger(__name__)

MEND_S = 30.0  # between two tries to learn which units may be stopped here
BEGAN_NOT = "the agent ended before it had begun"

Key = tuple[str, str]  # id and token of an order
Report = Callable[[Order, ActionState, str], None]


class SiteUnits:
    """One node's. Give it orders with ``take``; ``run`` works until cancelled.

    ``seen`` are the observed replicas as of the last look, once ``has_looked``; ``learnt`` hears which units may be
    stopped here: none where this agent's level lets it stop nothing.
    """

    def __init__(
        self,
        book: UnitBook,
        helper: Helper,
        *,
        seen: Callable[[], Sequence[ReplicaStatus]],
        has_looked: Callable[[], bool],
        boot_id: str,
        level: Level,
        clock: Clock,
        paused: Callable[[], bool],
        report: Report,
        learnt: Callable[[tuple[str, ...]], None],
        door: Door,
        look_s: float = LOOK_S,
    ) -> None:
        self._book = book
        self._helper = helper
        self._has_looked = has_looked
        self._level = level
        self._clock = clock
        self._paused = paused
        self._report = report
        self._learnt = learnt
        self._work = UnitWork(
            book, helper, seen=seen, boot_id=boot_id, clock=clock, door=door, objection=self._objection, look_s=look_s
        )
        self._wanted: set[Key] = set()
        self._refused: set[Key] = set()  # orders that were never taken on, so that this is said once
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    # -- orders -----------------------------------------------------------------------------------------

    def takes(self, order: Order) -> bool:
        """Whether it is about a unit's replica: other restarts are those of our own replicas."""
        if order.replica is None or order.of not in DEEDS:
            return False
        known = self._book.of(order.replica)
        begun = known is not None and known.key == (order.id, order.token)
        return order.of is not ActionKind.RESTART_REPLICA or begun or self._work.status(order.replica) is not None

    def take(self, orders: Sequence[Order], *, old: bool = False) -> None:
        """All orders that stand. ``old``: they stood before this agent started; what was taken on then goes on."""
        self._wanted = {(order.id, order.token) for order in orders}
        self._refused &= self._wanted
        for order in orders:
            if (order.id, order.token) not in self._tasks.keys() | self._refused:
                self._take(order, old=old)

    def _take(self, order: Order, *, old: bool) -> None:
        known = self._book.of(order.replica or "")
        if known is not None and known.key == (order.id, order.token):
            if known.step is Step.ENDED:  # what was said of it may not have arrived
                self._say(known)
        elif old or self._book.is_stale(order):
            self._refused.add((order.id, order.token))
            why = BEGAN_NOT if old else f"token {order.token} is not newer than what was begun here: it is stale"
            self._report(order, ActionState.FAILED if old else ActionState.REFUSED, why)
        else:
            self._begin(Entry(order=order, boot_id=self._work.boot_id, taken_at=self._clock.monotonic()))

    def _begin(self, entry: Entry) -> None:
        task = asyncio.get_running_loop().create_task(self._carry_out(entry))
        self._tasks[entry.key] = task
        task.add_done_callback(lambda _: self._tasks.pop(entry.key, None))

    def _say(self, entry: Entry) -> None:
        self._report(entry.order, entry.state or ActionState.FAILED, entry.why)

    # -- the loop ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Go on with what an earlier agent began; learn what may be done here; see who starts what we have stopped."""
        for entry in self._book.unfinished():
            if entry.key not in self._tasks:
                self._begin(entry)
        try:
            again = self._clock.monotonic()
            while True:
                if self._clock.monotonic() >= again:
                    again = float("inf") if await self._learn() else self._clock.monotonic() + MEND_S
                await self._see_who_is_back()
                await self._work.wait()
        finally:
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _learn(self) -> bool:
        """Whether it is known now which units may be stopped."""
        if not self._level.allows(NEEDED_LEVEL[ActionKind.DRAIN]):
            return True
        try:
            units = (await self._helper.able()).units
        except Unreachable:
            return False
        if units:
            self._learnt(units)
        return True

    async def _see_who_is_back(self) -> None:
        """A unit that somebody has started is in their hands: whoever stops it again, it was not us."""
        for entry in self._book.down():
            status = self._work.status(entry.replica)
            if status is not None and status.pid != entry.pid:
                with contextlib.suppress(OSError):
                    await self._work.put(entry, down=False)

    # -- one order --------------------------------------------------------------------------------------

    async def _carry_out(self, entry: Entry) -> None:
        async with self._turns[entry.replica]:
            try:
                entry = await self._done(entry)
            except OSError as error:
                why = f"what it would do cannot be written down first: {error}"
                log.error("%s", why, extra={"action_id": entry.order.id})
                self._report(entry.order, ActionState.FAILED, why)
                return
        order = entry.order
        told = {"action_id": order.id, "replica": order.replica, "unit": entry.unit, "state": entry.state}
        log.warning("%s has ended: %s", order.of, entry.why, extra=told)
        self._say(entry)

    async def _done(self, entry: Entry) -> Entry:
        """The entry with its outcome. Raises OSError."""
        try:
            if entry.step is Step.WAITING:
                entry = await self._work.put(_following(entry, self._book.of(entry.replica)))
                await self._leave(entry)
                self._report(entry.order, ActionState.RUNNING, "")
            return await DEEDS[entry.order.of](self._work, entry)
        except Halted as error:
            state, why = ActionState.EXPIRED, str(error)
            await self._reopen(entry)
        except Refused as error:
            state, why = ActionState.REFUSED, str(error)
            await self._reopen(entry)
        except Unreachable as error:
            state, why = ActionState.FAILED, str(error)
            await self._reopen(entry)
        return await self._work.end(entry, state, why)

    async def _reopen(self, entry: Entry) -> None:
        """It stays: what we have shut is open again."""
        known, status = self._book.of(entry.replica), self._work.status(entry.replica)
        if known is not None and known.closed and status is not None and status.url:
            await self._work.door.reopen(status.url)

    async def _leave(self, entry: Entry) -> None:
        """Wait for the first look, and for a pause to end. Raises Refused or Halted."""
        order = entry.order
        if not self._level.allows(NEEDED_LEVEL[order.of]):
            raise Refused(f"the level in this agent's configuration is {self._level}: {order.of} needs more")
        while not self._has_looked() or (self._paused() and order.of is not ActionKind.RELEASE):
            why = self._gone(entry)
            if why is not None:
                raise Halted(why)
            await self._work.wait()
        self._work.insist(entry)

    def _objection(self, entry: Entry) -> str | None:
        if entry.order.of is not ActionKind.RELEASE and self._paused():  # giving back is never held up
            return "automation is paused here"
        return self._gone(entry)

    def _gone(self, entry: Entry) -> str | None:
        if entry.key not in self._wanted:
            return "the order was taken back"
        return f"its {entry.order.ttl_s:.0f} s are over" if self._work.is_late(entry) else None


def _following(entry: Entry, before: Entry | None) -> Entry:
    """What the order before has noted of a unit that it has stopped: that is known until the unit runs again."""
    if before is None or before.key == entry.key or not before.down:
        return entry
    return msgspec.structs.replace(
        entry, unit=before.unit, pid=before.pid, invocation=before.invocation, file_state=before.file_state,
        down=before.down,
    )  # fmt: skip
