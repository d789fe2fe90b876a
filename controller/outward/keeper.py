"""The keepers: each looks at one manager, tells the core what is new, and has the core's orders carried out.

A look comes first, and what it found is on disk before anything is done: a controller that may not write any more does
nothing. An order that still stands after it was carried out (a pod that may not be evicted yet) is carried out again,
ever more seldom.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from controller.adapters.adapter import Adapter
from controller.core.core import Core
from controller.core.fleet.stimuli import AnyStimulus, Arrived, Managed, Managing
from controller.core.fleet.views import OwnerOrder
from controller.deciding.conductor import Conductor, Submission
from vocab.clock import Clock
from vocab.errors import CorralError, Refused, Unreachable
from vocab.messages import ActionItem
from vocab.states import ActionKind, ActionState
from wire.backoff import delay_s

log = logging.getLogger(__name__)

POLL_S = 0.5  # between two glances at the core's orders: a comparison in memory
AGAIN_FIRST_S, AGAIN_MOST_S = 5.0, 60.0  # between two tries of an order that still stands


class Keeper:
    """One adapter's loop. ``count`` is told of each act and its outcome."""

    def __init__(
        self,
        adapter: Adapter,
        managing: Managing,
        conductor: Conductor,
        clock: Clock,
        count: Callable[[str, str, str], None],
        look_s: float,
    ) -> None:
        self._adapter = adapter
        self._managing = managing
        self._conductor = conductor
        self._clock = clock
        self._look_s = look_s
        self._count = count
        self._core: Core | None = None  # the one that was told; another knows nothing yet
        self._said: dict[str, Managed] = {}
        self._told = managing
        self._looked_at = float("-inf")
        self._tries: dict[str, tuple[int, float]] = {}  # by token: how often, and when again

    async def run(self) -> None:
        """Keep until cancelled."""
        try:
            while True:
                await self.turn()
                await asyncio.sleep(POLL_S)
        finally:
            await self._adapter.close()

    async def turn(self) -> None:
        """Look, tell and act, if anything is due; of several controllers the one that decides."""
        if not (self._conductor.ready[0] and self._conductor.decides):
            return
        due = self._due()
        if not due and self._clock.monotonic() < self._looked_at + self._look_s:
            return
        with contextlib.suppress(Unreachable):  # the store is down: the next turn tells it
            if await self._look() and due:
                done = [order for order in self._due() if self._stands(order) and await self._carry_out(order)]
                await self._look()
                await self._tell_outcomes(done)

    def _due(self) -> list[OwnerOrder]:
        """The orders for this manager that were not tried lately."""
        now = self._clock.monotonic()
        mine = [order for order in self._conductor.orders() if order.by == self._adapter.name]
        tokens = {order.action.token for order in mine}
        self._tries = {token: tried for token, tried in self._tries.items() if token in tokens}
        return [order for order in mine if self._tries.get(order.action.token, (0, 0.0))[1] <= now]

    def _stands(self, order: OwnerOrder) -> bool:
        """Whether it still does: those before it take time, and a pause or another controller may have come."""
        return any(order.action.token == each.action.token for each in self._conductor.orders())

    async def _look(self) -> bool:
        """Tell the core what is new; whether the manager answers."""
        self._looked_at = self._clock.monotonic()
        if self._core is not self._conductor.mind.core:
            self._core, self._said, self._told = self._conductor.mind.core, {}, self._managing
        try:
            nodes: Sequence[Managed] = await self._adapter.look()
        except CorralError as error:
            await self._tell([], replace(self._managing, ok=False, why=str(error)))
            return False
        await self._tell(nodes, replace(self._managing, ok=True, why=""))
        return True

    async def _tell(self, nodes: Sequence[Managed], managing: Managing) -> None:
        """The news alone. Raises Unreachable; then it is still news."""
        news: list[AnyStimulus] = [node for node in nodes if self._said.get(node.node) != node]
        named = {node.node for node in nodes}
        gone = [name for name in self._said if name not in named] if managing.ok else []
        news += [Managed(node=name, by=self._adapter.name, gone=True) for name in gone]
        if managing != self._told:
            news.append(managing)
            if managing.ok != self._told.ok or not managing.ok:
                log.info("%s", managing.why or "answers", extra={"manager": managing.by, "ok": managing.ok})
        if news:
            await self._conductor.submit(Submission(stimuli=news))
        self._said |= {node.node: node for node in nodes}
        for name in gone:
            del self._said[name]
        self._told = managing

    async def _carry_out(self, order: OwnerOrder) -> bool:
        """Whether it went well."""
        action = order.action
        tries = self._tries.get(action.token, (0, 0.0))[0] + 1
        wait_s = delay_s(tries, action.id, first_s=AGAIN_FIRST_S, most_s=AGAIN_MOST_S)
        self._tries[action.token] = (tries, self._clock.monotonic() + wait_s)
        outcome = "done"
        try:
            await self._adapter.act(order)
        except Refused as error:
            outcome = "refused"
            await self._answer(order, ActionState.REFUSED, str(error))
        except CorralError as error:
            outcome = "failed"
            log.warning("%s", error, extra={"manager": order.by, "action": action.id, "try": tries})
        else:
            log.info("carried out", extra={"manager": order.by, "action": action.id, "try": tries})
        self._count(order.by, action.of.value, outcome)
        return outcome == "done"

    async def _tell_outcomes(self, done: Sequence[OwnerOrder]) -> None:
        """What a look has shown to be done. The end of a replica is seen by its agent."""
        for order in done:
            node = self._said.get(order.node)
            if order.replica is not None or node is None:
                continue
            closed, closes = (order.gpu or order.node) in node.ours, order.action.of is ActionKind.DRAIN
            if closed and closes:
                await self._answer(order, ActionState.RUNNING, f"{order.by} has closed it; what runs there goes on")
            elif not closed and not closes:
                await self._answer(order, ActionState.DONE, f"no mark of ours stands on it in {order.by}")

    async def _answer(self, order: OwnerOrder, state: ActionState, why: str) -> None:
        action = order.action
        item = ActionItem(
            at=self._clock.now(),
            node=order.node,
            id=action.id,
            of=action.of,
            token=action.token,
            state=state,
            error=why,
        )
        await self._conductor.submit(Submission(stimuli=(Arrived(node=order.node, item=item),)))
