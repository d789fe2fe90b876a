"""The way to the controller: what the spool holds goes up in batches, what the node should do comes down.

New items go at once, after they are on disk; otherwise a heartbeat carries changes only: every two
seconds, or as seldom as a controller of many nodes asks for. Nothing here decides. With the controller gone
it backs off and keeps trying; the node goes on with the Desired that lies on its disk. The controller's answer
is what deletes from the spool.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from agent.page import Page
from agent.spool import Spool
from vocab.clock import Clock
from vocab.errors import CorralError, InputError, Refused, SpoolFull, Unreachable
from vocab.messages import Batch, BatchAck, Desired, NodeFacts, ReplicaStatus
from wire.backoff import delay_s
from wire.client import Client
from wire.disk import write_durably

T = TypeVar("T")

log = logging.getLogger(__name__)

HEARTBEAT_S = 2.0
MOST_HEARTBEAT_S = 10.0  # a controller of many nodes may ask for no more than this
REPLICAS_S = 10.0  # the whole list goes at least this often
POLL_S = 25.0  # how long the controller may hold a poll; ours waits a little longer
MOST_ITEMS = 500
FIRST_RETRY_S = 0.2


class Node(Protocol):
    """What the uplink asks of the agent it reports for."""

    def facts(self) -> NodeFacts | None:
        """What the node is; None until its inventory is known."""
        ...

    def replicas(self) -> tuple[ReplicaStatus, ...]:
        """The whole list of its replicas."""
        ...

    def has_looked(self) -> bool:
        """Whether that list is whole. Until then it is not told, for what is missing on it would count as gone."""
        ...

    def paused(self) -> bool:
        """Whether the node's PAUSE file stands."""
        ...

    def apply(self, desired: Desired) -> None:
        """Take a new Desired."""
        ...


class Tally(Protocol):
    """Where the uplink counts."""

    def batch(self, result: str) -> None:
        """A batch was sent with this result: stored, unreachable or refused."""
        ...

    def failed(self, part: str) -> None:
        """Something could not be done; the log has the details."""
        ...


class Uplink:
    """One node's link. ``wake`` sends at once; ``run`` works until cancelled."""

    def __init__(
        self, client: Client, node: Node, name: str, session: str, spool: Spool, page: Page, clock: Clock, tally: Tally,
        desired_path: Path, desired: Desired | None,
    ) -> None:  # fmt: skip
        self._client = client
        self._node = node
        self._name = name
        self._session = session
        self._spool = spool
        self._page = page
        self._clock = clock
        self._tally = tally
        self._desired_path = desired_path
        self._wake = asyncio.Event()
        self._answers = asyncio.Event()  # set while somebody takes our reports
        self._facts_sent: NodeFacts | None = None
        self._replicas_sent: tuple[tuple[ReplicaStatus, ...], float] | None = None
        self._most = MOST_ITEMS
        self._heartbeat_s = HEARTBEAT_S  # as the controller asked last
        self._asked_s = 0.0  # for how long the controller's last answer wants us to stay away
        self.desired = desired
        self.up = False
        self.last_success: float | None = None
        self.last_bytes = 0

    @property
    def generation(self) -> int:
        """Of the Desired that the node has taken; 0 if none."""
        return self.desired.generation if self.desired else 0

    def wake(self) -> None:
        """There is something to send now."""
        self._wake.set()

    async def run(self) -> None:
        """Report and listen until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._report())
            tasks.create_task(self._listen())

    # -- up ---------------------------------------------------------------------------------------------

    async def _report(self) -> None:
        failures = 0
        while True:
            self._wake.clear()
            result = await self._send()
            self._tally.batch(result)
            if result == "unreachable":
                self._answers.clear()
            else:
                self._answers.set()
            if result != "stored":
                failures += 1
                self._lost(failures)
                await asyncio.sleep(self._pause_s(failures, self._asked_s))
                continue
            if failures:
                log.info("the controller answers again", extra={"node": self._name, "waiting": self._spool.depth})
            failures = 0
            if not self._spool.depth:
                await self._rest()

    def _lost(self, failures: int) -> None:
        """Whoever answers next may have forgotten what it was told."""
        self._page.restart()
        self._facts_sent, self._replicas_sent = None, None
        if failures == 1:
            log.warning("the controller does not answer", extra={"controller": self._client.base})

    async def _rest(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._heartbeat_s):
                await self._wake.wait()

    async def _send(self) -> str:
        """Send one batch: stored, unreachable or refused."""
        if self._node.facts() is None and not self._spool.depth and self._spool.last == 0:
            return "stored"  # nothing is known of this node yet, and nothing happened
        if self._spool.dirty:
            await self._sync()
        batch = self._batch()
        try:
            answer = await self._client.call("POST", "/api/v1/agent/batch", object, batch)
            ack = _decoded(answer, BatchAck)
        except (Unreachable, msgspec.DecodeError) as error:
            self.up = False
            self._asked_s = error.retry_after_s if isinstance(error, Unreachable) else 0.0
            log.debug("batch not delivered", extra={"error": str(error)})
            return "unreachable"
        except (InputError, Refused) as error:
            self.up, self._asked_s = False, 0.0
            self._refused(batch, error)
            return "refused"
        if ack is None:
            self._asked_s = 0.0
            return "unreachable"
        self._stored(batch, ack)
        return "stored"

    async def _sync(self) -> None:
        """Put what will be sent on disk first. A disk that fails is said and counted, and does not stop the sending."""
        try:
            await self._spool.flush()
        except OSError as error:
            self._tally.failed("spool")
            log.error("spool: cannot sync", extra={"error": str(error)})

    def _batch(self) -> Batch:
        now = self._clock.now()
        facts, replicas = self._node.facts(), self._node.replicas()
        fresh = self._node.has_looked() and (self._replicas_sent is None or self._replicas_sent[0] != replicas)
        stale = self._replicas_sent is not None and self._clock.monotonic() - self._replicas_sent[1] >= REPLICAS_S
        batch = Batch(
            node=self._name,
            boot_id=facts.boot_id if facts else "",
            at=round(now, 3),
            session=self._session,
            generation=self.generation,
            facts=facts if facts != self._facts_sent else None,
            items=self._spool.pending(self._most),
            gpus=self._page.report(now),
            replicas=replicas if fresh or stale else None,
            paused=self._node.paused(),
            spool_dropped=self._spool.dropped,
        )
        self.last_bytes = len(msgspec.json.encode(batch))
        return batch

    def _stored(self, batch: Batch, ack: BatchAck) -> None:
        self.up, self.last_success, self._most = True, self._clock.now(), MOST_ITEMS
        self._heartbeat_s = min(max(ack.heartbeat_s, HEARTBEAT_S), MOST_HEARTBEAT_S)
        self._page.delivered(batch.gpus)
        if batch.replicas is not None:
            self._replicas_sent = batch.replicas, self._clock.monotonic()
        if batch.facts is not None:
            self._facts_sent = batch.facts
        if ack.want_facts:
            self._lost(0)
            self._wake.set()
        if batch.items:
            with self._counted("spool"):
                self._spool.ack(min(ack.position, batch.items[-1].position))

    def _refused(self, batch: Batch, error: CorralError) -> None:
        """Find the item that the controller will never take: halve the batch, then give the one up."""
        log.error("the controller refuses a batch", extra={"items": len(batch.items), "error": str(error)})
        self._tally.failed("uplink")
        if len(batch.items) > 1:
            self._most = max(1, len(batch.items) // 2)
        elif batch.items and isinstance(error, InputError):
            log.error("an item is given up", extra={"position": batch.items[0].position, "error": str(error)})
            with self._counted("spool"):
                self._spool.skip(batch.items[0].position)

    @contextlib.contextmanager
    def _counted(self, part: str) -> Iterator[None]:
        try:
            yield
        except SpoolFull as error:
            self._tally.failed(part)
            log.error("%s", error)

    # -- down -------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Ask for what is to be done. One knock at a door that is shut is enough: that of the reports."""
        failures = 0
        while True:
            await self._answers.wait()
            try:
                await self._poll()
                failures = 0
            except (CorralError, msgspec.DecodeError) as error:
                failures += 1
                log.debug("no desired state", extra={"error": str(error)})
                asked_s = error.retry_after_s if isinstance(error, Unreachable) else 0.0
                await asyncio.sleep(self._pause_s(failures, asked_s))

    def _pause_s(self, failures: int, asked_s: float) -> float:
        """How long to stay away: as long as the controller asks for, and our own back-off."""
        return asked_s + delay_s(failures, self._session, first_s=FIRST_RETRY_S, most_s=5.0)

    async def _poll(self) -> None:
        began = self._clock.monotonic()
        path, timeout_s = "/api/v1/agent/desired", POLL_S + 10.0
        answer = await self._client.call(
            "GET", path, object, timeout_s=timeout_s, node=self._name, generation=self.generation
        )
        desired = _decoded(answer, Desired)
        if desired is not None and self._is_newer(desired):
            await self._take(desired)
        elif self._clock.monotonic() - began < 1.0:  # a controller that does not hold polls must not be hammered
            await asyncio.sleep(1.0)

    def _is_newer(self, desired: Desired) -> bool:
        """Whether it comes after ours. A restored database says so by a higher epoch."""
        if self.desired is None:
            return True
        return (desired.epoch, desired.generation) > (self.desired.epoch, self.desired.generation)

    async def _take(self, desired: Desired) -> None:
        """On disk first, then in force; the next heartbeat says so."""
        try:
            await asyncio.to_thread(write_durably, self._desired_path, msgspec.json.encode(desired))
        except OSError as error:
            self._tally.failed("desired")
            log.error("desired state not kept on disk", extra={"error": str(error)})
        self.desired = desired
        self._node.apply(desired)
        self._wake.set()


def _decoded(answer: object, kind: type[T]) -> T | None:
    """The answer as ``kind``, None for null. Raises Unreachable if something else answers at this address."""
    try:
        return None if answer is None else msgspec.convert(answer, kind)
    except msgspec.ValidationError as error:
        raise Unreachable(f"the controller's answer is not a {kind.__name__}: {error}") from error


def stored(path: Path) -> Desired | None:
    """The Desired of an earlier run, or None. A damaged file is as good as none: the controller has it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Desired)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        log.warning("stored desired state cannot be read", extra={"file": str(path), "error": str(error)})
        return None
