"""The hand on the power: it carries out the power cycles that the core has ordered, each at most once.

Before the BMC is told anything, the store has that it begins (the action is *running*). A controller that was killed
after that does not send it again, for nobody knows whether it was sent; it only switches on what is off. How a cycle
ended is judged by the core: a new boot of the node is *done*, and not back in time is for a person.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from controller.core.fleet.stimuli import Arrived
from controller.deciding.conductor import Conductor, Submission
from controller.power.config import PowerConfig
from controller.power.power import Power, power_of
from vocab.clock import Clock
from vocab.errors import CorralError, Refused, Unreachable
from vocab.lines import ActionLine
from vocab.messages import ActionItem
from vocab.states import ActionKind, ActionState

log = logging.getLogger(__name__)

LOOK_S = 1.0
AGAIN_S = 15.0  # between two looks at a BMC that does not answer
AT_ONCE = 32  # BMCs that are spoken to: one that hangs takes a socket or a process, and no time of the others
PATIENCE_S = 120.0  # after which one that never answered is for a person
PAUSE_FILE = Path("/etc/corral/PAUSE")


class Powering:
    """A loop over the fleet's power cycles. ``powers``: by node."""

    def __init__(
        self,
        conductor: Conductor,
        clock: Clock,
        powers: Mapping[str, Power],
        *,
        pause_file: Path = PAUSE_FILE,
        look_s: float = LOOK_S,
    ) -> None:
        self._conductor = conductor
        self._clock = clock
        self._powers = powers
        self._pause_file = pause_file
        self._look_s = look_s
        self._began: set[str] = set()  # actions that this life has begun or finished
        self._since: dict[str, float] = {}  # since when a BMC has not answered, by action
        self._asked: dict[str, float] = {}
        self._at_work: set[str] = set()  # nodes
        self._room = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        """Look and act until cancelled: on each node one thing after another, on no node because of another's BMC."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                await asyncio.sleep(self._look_s)
                view = self._conductor.look() if self._powers and self._conductor.decides else None
                for action in view.actions if view is not None else ():
                    node = action.subject.node or ""
                    if action.of is ActionKind.POWER_CYCLE and node in self._powers and node not in self._at_work:
                        self._at_work.add(node)
                        tasks.create_task(self._attend(action, node))

    async def _attend(self, action: ActionLine, node: str) -> None:
        try:
            async with self._room:
                await self._act(action, self._powers[node])
        finally:
            self._at_work.discard(node)

    async def _act(self, action: ActionLine, power: Power) -> None:
        try:
            if action.state is ActionState.ORDERED and not self._pause_file.exists():
                await self._begin(action, power)
            elif action.state is ActionState.RUNNING and action.id not in self._began:
                await power.complete()
                self._began.add(action.id)
        except Unreachable as error:
            log.warning("power: %s", error, extra={"action_id": action.id, "node": action.subject.node})
        except CorralError as error:
            log.error("power: %s", error, extra={"action_id": action.id, "node": action.subject.node})
            self._began.add(action.id)

    async def _begin(self, action: ActionLine, power: Power) -> None:
        now = self._clock.monotonic()
        if now < self._asked.get(action.id, now - AGAIN_S) + AGAIN_S:
            return
        self._asked[action.id] = now
        try:
            means = await power.plan()
        except Unreachable as error:
            if now - self._since.setdefault(action.id, now) >= PATIENCE_S:
                await self._say(action, ActionState.REFUSED, str(error))
            raise
        except CorralError as error:
            await self._say(action, ActionState.REFUSED, str(error))
            return
        if self._pause_file.exists() or not await self._say(action, ActionState.RUNNING, None):
            return  # called off or paused meanwhile
        self._began.add(action.id)
        if not self._conductor.decides:
            return  # it stood still meanwhile: another one has it, and what it made of it is not known here
        told = {"action_id": action.id, "token": action.token, "node": action.subject.node, "means": means}
        log.warning("the power of a node is cycled", extra=told)
        try:
            await power.cycle(means)
        except Refused as error:
            await self._say(action, ActionState.FAILED, str(error))

    async def _say(self, action: ActionLine, state: ActionState, error: str | None) -> bool:
        """Have it stored what becomes of an action; whether it became that. Raises Unreachable."""
        item = ActionItem(
            at=self._clock.now(),
            node=action.subject.node or "",
            id=action.id,
            of=action.of,
            token=action.token,
            state=state,
            error=error,
        )
        lines = await self._conductor.submit(Submission(stimuli=(Arrived(node=item.node, item=item),)))
        return any(isinstance(line, ActionLine) and (line.id, line.state) == (action.id, state) for line in lines)


def powers(
    configured: tuple[PowerConfig, ...],
    pools: dict[str, tuple[str, ...]],
    make: Callable[[PowerConfig, str], Power] = power_of,
) -> dict[str, Power]:
    """The power of every node that a table covers; where two do, the first counts."""
    found: dict[str, Power] = {}
    for config in configured:
        for node in config.covered(pools):
            found.setdefault(node, make(config, node))
    return found
