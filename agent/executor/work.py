"""What a procedure is given: the journal, the root helper, what is around it on the node, and the right to go on."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from agent.executor.evidence import Evidence
from agent.executor.journal import Entry, Journal
from agent.roothelper.client import Helper
from agent.roothelper.requests import AnyReply, AnyRequest, Denied, Failed, Holder, Survey, Surveyed
from vocab.clock import Clock
from vocab.errors import Refused, Unreachable
from vocab.observations import AnyObservation, Check, GpuSample
from vocab.states import ActionState

RESERVED_S = 45.0  # of an order's time, kept from the evidence for the repair itself


class Halted(Refused):
    """A person or the clock stopped a repair before it had done anything: it may be ordered again."""


class Outcome(msgspec.Struct, frozen=True):
    """How a repair ended."""

    state: ActionState
    why: str


class Surroundings(Protocol):
    """The agent around the executor."""

    @property
    def boot_id(self) -> str:
        """Of the node, as it runs now."""
        ...

    def gpus(self) -> tuple[str, ...]:
        """All GPUs of the node."""
        ...

    def sample(self, gpu: str) -> GpuSample | None:
        """The last reading of a GPU."""
        ...

    async def diagnose(self, gpu: str) -> tuple[Check, ...]:
        """The active checks that may run on it now; not yet judged."""
        ...

    def driver_pids(self) -> frozenset[int]:
        """Our own children that have the driver open."""
        ...

    def replica_pids(self) -> frozenset[int]:
        """The processes of the replicas that we started."""
        ...

    async def let_go(self) -> None:
        """End our own children that have the driver open."""
        ...

    def take_up(self) -> None:
        """Start them again."""
        ...

    def go_down(self) -> None:
        """The node is about to boot: nothing is started any more, and replicas stop admitting."""
        ...

    def stay_up(self) -> None:
        """It does not boot after all."""
        ...

    def take(self, observation: AnyObservation) -> None:
        """Judge what was seen."""
        ...

    def was_reset(self, gpus: tuple[str, ...]) -> None:
        """These GPUs have been reset."""
        ...


class Work:
    """One node's means. ``objection`` says why an order may not go on (paused, taken back, too old), or None."""

    def __init__(
        self,
        *,
        journal: Journal,
        helper: Helper,
        around: Surroundings,
        evidence: Evidence,
        clock: Clock,
        objection: Callable[[Entry], str | None],
    ) -> None:
        self.journal = journal
        self.helper = helper
        self.around = around
        self.evidence = evidence
        self.clock = clock
        self._objection = objection

    async def step(self, entry: Entry, **changes: Any) -> Entry:
        """The entry with these changes, on disk."""
        entry = msgspec.structs.replace(entry, **changes)
        await asyncio.to_thread(self.journal.put, entry)
        return entry

    def insist(self, entry: Entry) -> None:
        """Raises Halted if the order may not go on."""
        why = self._objection(entry)
        if why is not None:
            raise Halted(why)

    def left_s(self, entry: Entry) -> float:
        """Seconds of the order's time that are left."""
        return entry.taken_at + entry.order.ttl_s - self.clock.monotonic()

    async def gather(self, entry: Entry) -> None:
        """Take evidence, for as long as the order's time allows."""
        await self.evidence.gather(entry.order.id, self.left_s(entry) - RESERVED_S)

    async def ask(self, request: AnyRequest) -> AnyReply:
        """Have the root helper do it. Raises Refused if it did not because it may not, Unreachable if nobody knows."""
        reply = await self.helper.ask(request)
        if isinstance(reply, Denied):
            raise Refused(reply.why)
        return reply

    async def survey(self, gpus: tuple[str, ...]) -> Surveyed:
        """Who is there. Raises Refused if that cannot be learnt."""
        try:
            reply = await self.ask(Survey(gpus=gpus))
        except Unreachable as error:
            raise Refused(f"it cannot be seen who uses the GPUs: {error}") from error
        if not isinstance(reply, Surveyed):
            why = reply.why if isinstance(reply, Failed) else "an odd answer"
            raise Refused(f"it cannot be seen who uses the GPUs: {why}")
        return reply

    async def services(self) -> tuple[str, ...]:
        """Those that may be stopped. Raises Refused if nobody answers."""
        try:
            return (await self.helper.able()).services
        except Unreachable as error:
            raise Refused(str(error)) from error


def told(holders: tuple[Holder, ...]) -> str:
    """Holders in words: what a person looks for first."""
    return ", ".join(f"pid {each.pid} ({each.name}{f', {each.unit}' if each.unit else ''})" for each in holders)
