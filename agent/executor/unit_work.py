"""What an order about a unit is given: the book, the root helper, what is seen, and the right to go on."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from agent.executor.unit_book import Entry, Step, UnitBook
from agent.executor.work import Halted
from agent.roothelper.client import Helper
from agent.roothelper.requests import AnyUnitRequest, Denied, Done, Failed, ReadUnit, UnitRun
from vocab.clock import Clock
from vocab.errors import Refused, Unreachable
from vocab.messages import ReplicaStatus
from vocab.states import ActionState

LOOK_S = 1.0  # between two looks at a unit that stops or starts


class Door(Protocol):
    """The door of an engine that has one."""

    async def close(self, url: str) -> bool:
        """Have it admit nobody new; whether it does."""
        ...

    async def reopen(self, url: str) -> None:
        """Have it admit again."""
        ...


class UnitWork:
    """One node's means. ``seen``: its replicas at the last look; ``objection``: why an order may not go on, or None."""

    def __init__(
        self,
        book: UnitBook,
        helper: Helper,
        *,
        seen: Callable[[], Sequence[ReplicaStatus]],
        boot_id: str,
        clock: Clock,
        door: Door,
        objection: Callable[[Entry], str | None],
        look_s: float = LOOK_S,
    ) -> None:
        self.book = book
        self.boot_id = boot_id
        self.clock = clock
        self.door = door
        self.look_s = look_s
        self._helper = helper
        self._seen = seen
        self._objection = objection

    async def put(self, entry: Entry, **changes: Any) -> Entry:
        """The entry with these changes, on disk."""
        entry = msgspec.structs.replace(entry, **changes)
        await asyncio.to_thread(self.book.put, entry)
        return entry

    async def end(self, entry: Entry, state: ActionState, why: str, **changes: Any) -> Entry:
        """The entry with its outcome, on disk."""
        return await self.put(entry, step=Step.ENDED, state=state, why=why, **changes)

    def insist(self, entry: Entry) -> None:
        """Raises Halted if the order may not go on."""
        why = self._objection(entry)
        if why is not None:
            raise Halted(why)

    def is_late(self, entry: Entry) -> bool:
        """Whether the order's time is over; one without a time never is."""
        return 0 < entry.order.ttl_s <= self.clock.monotonic() - entry.taken_at

    async def wait(self) -> None:
        """Until the next look."""
        await asyncio.sleep(self.look_s)

    def status(self, replica: str) -> ReplicaStatus | None:
        """An observed replica as it was seen last; None if it is not seen any more."""
        return next((status for status in self._seen() if status.replica == replica and status.observed), None)

    async def read(self, unit: str) -> UnitRun:
        """How a unit stands. Raises Refused if that may not be asked, Unreachable if nobody knows."""
        reply = await self._helper.ask(ReadUnit(unit=unit))
        if isinstance(reply, Denied):
            raise Refused(reply.why)
        if not isinstance(reply, UnitRun):
            raise Unreachable(reply.why if isinstance(reply, Failed) else "the root helper gave an odd answer")
        return reply

    async def tell(self, request: AnyUnitRequest) -> None:
        """Have systemd do it. Raises Refused if it does not, Unreachable if nobody knows."""
        reply = await self._helper.ask(request)
        if isinstance(reply, Denied | Failed) and not getattr(reply, "unseen", False):
            raise Refused(reply.why)
        if not isinstance(reply, Done):
            raise Unreachable(reply.why if isinstance(reply, Failed) else "the root helper gave an odd answer")
