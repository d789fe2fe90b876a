"""Who thinks here, and who is thought for: what comes in goes to the controller that decides, be it this one or not.

With SQLite this controller decides, always. Where several share a PostgreSQL, one of them decides. The others follow
what it stores, show it, and hand on what they hear (``several.inbox``, ``several.sightings``), until one of them
has to take over; then its Core knows all that was stored and, within seconds, all that was heard.
"""

import asyncio

from msgspec.structs import replace

from controller.core.fleet.stimuli import Asked
from controller.core.fleet.views import OwnerOrder, View
from controller.core.preview import Preview
from controller.deciding.mind import Mind
from controller.deciding.shown import Shown
from controller.deciding.steady import SteadyTime
from controller.deciding.turns import LOOK_S, Turns
from controller.several.shared import Shared
from controller.several.submission import Submission
from controller.store.form import Unreadable
from controller.store.store import Store
from controller.telling.export import Export
from controller.telling.watch import Watch
from vocab.clock import Clock
from vocab.errors import Deposed, Unreachable
from vocab.lines import AnyLine
from vocab.messages import Batch

__all__ = ["Conductor", "Submission"]


class Conductor:
    """``submit`` gives it work; ``view`` shows the fleet as the disk has it."""

    def __init__(
        self, store: Store, mind: Mind, watch: Watch, clock: Clock, export: Export, shared: Shared | None = None
    ) -> None:
        self._store = store
        self.mind = mind
        self._clock = clock
        self._caught_up = clock.monotonic()
        self._steady = SteadyTime(clock)
        self._shared = shared
        self._shown = Shown(mind, watch, export)
        self._turns = Turns(store, mind, self._shown, self._steady, export, shared)

    @property
    def ready(self) -> tuple[bool, str]:
        """Whether batches are taken; why not, or who decides."""
        return (self._shown.down is None, self._shown.down or ("ok" if self._shared is None else f"ok: {self.role}"))

    @property
    def seq(self) -> int:
        """Of the last change that is shown."""
        return self.mind.seq

    @property
    def leads(self) -> bool:
        """Whether this controller is the one that decides, as far as it knows."""
        return self._shared is None or self._shared.leader.term is not None

    @property
    def decides(self) -> bool:
        """Whether it is for sure. What is done outside the database, where no fence stands, asks this first."""
        return self._shared is None or self._shared.leader.is_sure

    @property
    def name(self) -> str:
        """As an observer: controllers on machines of their own see for themselves."""
        return "controller" if self._shared is None else f"controller:{self._shared.leader.name.partition('/')[0]}"

    @property
    def role(self) -> str:
        """For people: who decides."""
        if self._shared is None:
            return "decides"
        leader = self._shared.leader
        return "decides" if self.leads else f"follows {leader.holder.partition('/')[0] or 'nobody yet'}"

    @property
    def behind_s(self) -> float | None:
        """How long ago a controller that follows last had all that is stored; None if this one decides."""
        return None if self.leads else self._clock.monotonic() - self._caught_up

    async def view(self) -> View:
        """The fleet as of the last turn that is on disk. Raises Unreachable if there has been none."""
        return await self._shown.view()

    def look(self) -> View | None:
        """The fleet as last seen on disk, without waiting; None if it never was."""
        return self._shown.look()

    def silent(self) -> dict[str, str]:
        """The addresses of agents that are not heard, by node. For this, no picture of the fleet is drawn."""
        return self.mind.core.silent()

    async def draw(self) -> None:
        """Keep what is looked at nearly drawn, until cancelled."""
        await self._shown.draw()

    def orders(self) -> tuple[OwnerOrder, ...]:
        """What managers and owners are asked to do by the controller that decides, as the disk has it."""
        known = self.decides and self._shown.down is None and self._shown.settled.is_set()
        return self.mind.core.orders() if known else ()

    async def preview(self, asked: Asked) -> Preview:
        """What an order would lead to, as the disk has the fleet; nothing is done. Raises Unreachable."""
        await self.view()
        if not self._shown.settled.is_set():
            raise Unreachable("the store does not answer")
        return self.mind.core.preview(asked, self._steady.now())

    async def submit(self, submission: Submission) -> list[AnyLine]:
        """Have it thought about; the lines that it led to, once they are on disk. Raises Unreachable."""
        if self._shown.down is not None:
            raise Unreachable(self._shown.down)
        if self._shared is not None:
            self._shared.sightings.note(submission)
            if not self.leads:
                return await self._hand_on(submission, self._shared)
        self._turns.put(submission)
        try:
            return await submission.stored
        except asyncio.CancelledError:  # its caller was kept waiting too long, and comes again
            self._knock(submission.batch)
            raise

    def _knock(self, batch: Batch | None) -> None:
        """Whose report waits here is not silent."""
        if batch is not None and self.leads:
            self.mind.knock(batch.node, self._steady.now())

    def hear(self, batch: Batch) -> Submission | None:
        """What must be submitted of a report: nothing of one that tells nothing new, as most do.

        Where all that it brings is news that no store needs, that is heard at once, and what follows from it is left.
        """
        if self.is_beat(batch):
            return self.beat(batch)
        self._knock(batch)
        return Submission(batch=batch)

    def is_beat(self, batch: Batch) -> bool:
        """Whether a report is news at most that no store needs, and is heard here and now."""
        return self._shown.down is None and self.leads and self.mind.is_heartbeat(batch)

    def beat(self, batch: Batch) -> Submission | None:
        """Hear such a report; what must be submitted for what it has stirred, if it has."""
        if self._shared is not None:
            self._shared.sightings.note(Submission(batch=batch))
        self._shown.stale()
        return Submission() if self.mind.beat(batch, self._steady.now()) else None

    async def _hand_on(self, submission: Submission, shared: Shared) -> list[AnyLine]:
        """Leave it to the controller that decides; a batch is acknowledged once that one will find it."""
        batch = submission.batch
        if batch is not None and self.mind.wants_facts(batch):  # it cannot be understood yet: the node comes again
            batch = submission.batch = replace(batch, items=())
        self.mind.see([submission], self._steady.now())
        if batch is None:
            return await shared.inbox.post(submission) if submission.audit is not None else []
        if batch.items or batch.facts is not None:
            await shared.inbox.post(submission)
        self.mind.keep(batch)
        return []

    async def run(self) -> None:
        """Decide, and where another controller does, follow; until cancelled."""
        if self._shared is None:
            await self._turns.run()
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._shared.inbox.run())
            tasks.create_task(self._shared.sightings.run())
            while True:
                await self._follow(self._shared)
                await self._lead(self._shared)

    async def _follow(self, shared: Shared) -> None:
        """Take in what another controller decides, until this one does."""
        campaign = asyncio.create_task(shared.leader.campaign())
        try:
            await asyncio.wait([campaign], timeout=LOOK_S)  # alone, it has nobody to follow
            while not campaign.done():
                await self._catch_up(shared)
                await asyncio.wait([campaign], timeout=LOOK_S)
            campaign.result()
        finally:
            campaign.cancel()

    async def _catch_up(self, shared: Shared) -> None:
        answered: list[Submission] = []
        try:
            answered = await shared.inbox.look()
            seen = await shared.seen()
            news = await self.mind.catch_up()
            self.mind.see(seen, self._steady.now())
            self._shown.show(news)
            self._caught_up = self._clock.monotonic()
            self._shown.open()
            shared.leader.barred = False
        except Unreachable as error:
            shared.leader.barred = isinstance(error, Unreadable)
            self._shown.close(error)
        for order in answered:  # whoever asks next sees what it led to
            order.succeed()

    async def _lead(self, shared: Shared) -> None:
        """Decide until another controller does."""
        self._store.term = shared.leader.term
        keeping = asyncio.create_task(shared.leader.keep())
        deciding = asyncio.create_task(self._turns.run())
        try:
            self._shown.settled.clear()
            await asyncio.wait([keeping, deciding], return_when=asyncio.FIRST_COMPLETED)
            deposed = _why_ended(deciding) or Deposed("another controller decides now; ask again")
            self._shown.close(deposed)
            self._turns.refuse([], deposed)
            if isinstance(deposed, Unreadable):
                shared.leader.barred = True
                await shared.leader.resign()
            shared.leader.term = None
        finally:
            for task in (keeping, deciding):
                task.cancel()
            await asyncio.wait([keeping, deciding])
            self._store.term = None
            self.mind.is_warm = False  # it may have thought what was never stored


def _why_ended(deciding: "asyncio.Task[None]") -> Unreadable | None:
    """Why this controller cannot decide, if that is what ended it. Raises what nobody expects."""
    if not deciding.done():
        return None
    try:
        deciding.result()
    except Deposed:
        return None
    except Unreadable as error:
        return error
    return None
