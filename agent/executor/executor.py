"""The loop of the hands: takes orders, each once; repairs one after the other; says what came of them.

An order is known by its id and token. One that is older than a repair that was begun here is stale; one whose time is
over, that was taken back, or that the PAUSE file forbids is not begun. Validations only read: they wait for nothing.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable, Sequence

from agent.executor.journal import Entry, Journal, Step, numbers
from agent.executor.reboot import reboot
from agent.executor.recovery import BEGAN_NOT, recover
from agent.executor.reset import reset, restore, start_again
from agent.executor.validation import validate
from agent.executor.work import Halted, Outcome, Work
from agent.roothelper.requests import ORDER
from vocab.clock import Clock
from vocab.errors import Refused, Unreachable
from vocab.messages import Order
from vocab.states import NEEDED_LEVEL, ActionKind, ActionState, Level

log = logging.getLogger(__name__)

PROCEDURES = {ActionKind.RESET_GPU: reset, ActionKind.REBOOT_NODE: reboot}
VERBS = {"reset": ActionKind.RESET_GPU, "reboot": ActionKind.REBOOT_NODE}
PAUSE_LOOK_S = 1.0
MOST_KNOWN = 1024  # orders that are remembered after they ceased to stand; the journal has those that were begun
MEND_S = 30.0  # between two tries to bring a service back, or to learn what this node can do

Key = tuple[str, str]  # id and token of an order
Report = Callable[[Order, ActionState, str], None]


class Executor:
    """One node's hands. Give it orders with ``take``; ``run`` works until cancelled.

    ``paused`` is asked before every harmful step. ``learnt`` hears which repairs the node has the means for.
    """

    def __init__(
        self,
        work: Callable[[Callable[[Entry], str | None]], Work],
        *,
        level: Level,
        clock: Clock,
        paused: Callable[[], bool],
        report: Report,
        learnt: Callable[[tuple[ActionKind, ...]], None],
        settle_s: float,
    ) -> None:
        self._work = work(self._objection)
        self._journal: Journal = self._work.journal
        self._level = level
        self._clock = clock
        self._paused = paused
        self._report = report
        self._learnt = learnt
        self._settle_s = settle_s
        self._wanted: set[Key] = set()
        self._taken: dict[Key, None] = {}  # these two in the order in which they came
        self._said: dict[Key, None] = {}
        self._queue: asyncio.Queue[Entry] = asyncio.Queue()
        self._validations: set[asyncio.Task[None]] = set()
        self._able: tuple[ActionKind, ...] | None = None
        self._answered = False

    # -- orders -----------------------------------------------------------------------------------------

    def take(self, orders: Sequence[Order], *, old: bool = False) -> None:
        """All orders that stand. ``old``: they stood before this agent started, so what was not begun never is."""
        self._wanted = {(order.id, order.token) for order in orders}
        fresh = [order for order in orders if (order.id, order.token) not in self._taken]
        for order in sorted(fresh, key=lambda order: numbers(order.token)):
            self._taken[order.id, order.token] = None
            self._take(order, old=old)
        for known in (self._taken, self._said):
            gone = [key for key in known if key not in self._wanted]
            for key in gone[: max(0, len(gone) - MOST_KNOWN)]:
                del known[key]

    def _take(self, order: Order, *, old: bool) -> None:
        known = self._journal.find(order)
        if order.of is ActionKind.VALIDATE:
            self._begin_validation(order)
        elif order.of not in PROCEDURES:
            return
        elif re.match(ORDER, order.id) is None:
            self._report(order, ActionState.REFUSED, f"{order.id!r} is no name of an order")
        elif known is not None:
            if known.step is Step.ENDED:  # what was said of it may not have arrived
                self._say(known)
        elif old:
            self._report(order, ActionState.FAILED, BEGAN_NOT)
        else:
            entry = Entry(order=order, boot_id=self._work.around.boot_id, taken_at=self._clock.monotonic())
            self._queue.put_nowait(entry)

    def _say(self, entry: Entry) -> None:
        self._said[entry.key] = None
        self._report(entry.order, entry.state or ActionState.FAILED, entry.why)

    # -- the loop ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Finish what an earlier agent began, then carry out orders."""
        try:
            while True:
                await self._mend()
                await self._learn()
                entry = await self._next()
                if entry is not None:
                    await self._mend()
                    await self._carry_out(entry)
        finally:
            for task in self._validations:
                task.cancel()
            await self._work.helper.close()

    async def _next(self) -> Entry | None:
        """The next repair to be begun; None if none has come for a while."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(MEND_S):
                return await self._queue.get()
        return None

    async def _learn(self) -> None:
        """What this node has the means for; asked until somebody answers."""
        if self._answered:
            return
        try:
            able = await self._work.helper.able()
            found = tuple(VERBS[verb] for verb in able.verbs if verb in VERBS)
            self._answered = True
        except Unreachable as error:
            log.debug("nobody can repair this node", extra={"error": str(error)})
            found = ()
        if found != self._able:
            self._able = found
            self._learnt(found)

    async def _mend(self) -> None:
        """Finish what an earlier agent, or a disk that took no more, has left: nothing is under way now."""
        for entry in self._journal.unfinished():
            try:
                if entry.step is Step.RESTORING and entry.key in self._said:
                    await restore(self._work, entry)
                else:
                    log.warning("an unfinished repair", extra={"action_id": entry.order.id, "step": entry.step.value})
                    self._say(await recover(self._work, entry))
            except OSError as error:
                log.error("the journal of repairs cannot be written", extra={"error": str(error)})
                await start_again(self._work, entry)  # services do not wait for the disk

    async def _carry_out(self, entry: Entry) -> None:
        order = entry.order
        stale = numbers(order.token) <= self._journal.newest
        try:
            if stale:
                raise Refused(f"token {order.token} is not newer than what was begun here: it is stale")
            entry = await self._work.step(entry)
            await self._leave(entry)
            self._report(order, ActionState.RUNNING, "")
            entry = await PROCEDURES[order.of](self._work, entry)
        except Halted as error:
            entry = await self._end(entry, Outcome(ActionState.EXPIRED, str(error)))
        except Refused as error:
            if stale:
                self._report(order, ActionState.REFUSED, str(error))
                return
            entry = await self._end(entry, Outcome(ActionState.REFUSED, str(error)))
        except OSError as error:
            log.error("the journal of repairs cannot be written", extra={"action_id": order.id, "error": str(error)})
            if self._journal.find(order) is None:
                self._report(order, ActionState.REFUSED, f"what it would do cannot be written down first: {error}")
            return  # one that was begun is finished or undone by the next look
        told = {"action_id": order.id, "token": order.token, "gpu": order.gpu, "state": entry.state, "why": entry.why}
        log.warning("%s has ended", order.of, extra=told)
        self._say(entry)

    async def _end(self, entry: Entry, outcome: Outcome) -> Entry:
        return await self._work.step(entry, step=Step.ENDED, state=outcome.state, why=outcome.why)

    async def _leave(self, entry: Entry) -> None:
        """Wait for a pause to end. Raises Refused if this node never does it, Halted if it is no longer wanted."""
        order = entry.order
        if not self._level.allows(NEEDED_LEVEL[order.of]):
            raise Refused(f"the level in this agent's configuration is {self._level}: {order.of} needs more")
        if self._able is not None and order.of not in self._able:
            raise Refused(f"this node has no means for {order.of}: do it by hand, then release the GPU")
        unrestored = [unit for each in self._journal.unfinished() for unit in each.stopped]
        if unrestored:
            raise Refused(f"{', '.join(unrestored)} did not start again after the last repair: a person must look")
        while self._paused() and self._gone(entry) is None:  # noqa: ASYNC110 - a file tells nobody that it went
            await asyncio.sleep(PAUSE_LOOK_S)
        self._work.insist(entry)

    def _objection(self, entry: Entry) -> str | None:
        return "automation is paused here" if self._paused() else self._gone(entry)

    def _gone(self, entry: Entry) -> str | None:
        if entry.key not in self._wanted:
            return "the order was taken back"
        if self._work.left_s(entry) <= 0:
            return f"its {entry.order.ttl_s:.0f} s are over"
        return None

    # -- validations ------------------------------------------------------------------------------------

    def _begin_validation(self, order: Order) -> None:
        task = asyncio.get_running_loop().create_task(self._validate(order))
        self._validations.add(task)
        task.add_done_callback(self._validations.discard)

    async def _validate(self, order: Order) -> None:
        if order.gpu is None:
            self._report(order, ActionState.REFUSED, "it names no GPU")
            return
        outcome = await validate(self._work.around, order.gpu, self._clock, self._settle_s)
        self._report(order, outcome.state, outcome.why)
