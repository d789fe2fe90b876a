"""A controller small enough to read: it takes batches, holds polls, and can be told to fail.

It keeps what the real one keeps of an agent: the items by position, the last statuses, the facts. ``fault``
makes it answer otherwise: ``gone`` (503), ``refuse`` (400 while a batch carries an item that ``poison``
picks), ``deaf`` (stored, but the answer is lost).
"""

import asyncio
import contextlib
from collections.abc import Callable

import msgspec
from aiohttp import web

from vocab.messages import Batch, BatchAck, Desired, GpuStatus, Item, NodeFacts, ReplicaStatus
from wire.server import error_reply, reply

POLL_S = 0.5


class Controller:
    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.sizes: list[int] = []
        self.items: dict[int, Item] = {}
        self.repeats = 0
        self.facts: NodeFacts | None = None
        self.gpus: dict[str, GpuStatus] = {}
        self.replicas: tuple[ReplicaStatus, ...] = ()
        self.fault: str | None = None
        self.poison: Callable[[Item], bool] = lambda _: False
        self.want_facts = False
        self.desired: Desired | None = None
        self._moved = asyncio.Event()
        self._came = asyncio.Condition()
        self.url = ""

    async def __aenter__(self) -> "Controller":
        await self.start("127.0.0.1", 0)
        return self

    async def start(self, host: str, port: int) -> None:
        app = web.Application()
        app.router.add_post("/api/v1/agent/batch", self._batch)
        app.router.add_get("/api/v1/agent/desired", self._desired)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port, reuse_address=True).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def restart(self) -> None:
        """The same controller at the same address, with what it had on disk."""
        await self.start("127.0.0.1", int(self.url.rsplit(":", 1)[1]))

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def want(self, desired: Desired) -> None:
        self.desired = desired
        self._moved.set()

    async def until(self, holds: Callable[["Controller"], bool], within_s: float = 60.0) -> None:
        """Wait until a batch makes it so."""
        async with asyncio.timeout(within_s), self._came:
            await self._came.wait_for(lambda: holds(self))

    async def _batch(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        batch = msgspec.json.decode(raw, type=Batch)
        if self.fault == "gone":
            return error_reply("internal", "down", 503)
        if self.fault == "refuse" and any(self.poison(record.item) for record in batch.items):
            return error_reply("InputError", "this item cannot be", 400)
        self._store(batch, len(raw))
        async with self._came:
            self._came.notify_all()
        if self.fault == "deaf":
            return error_reply("internal", "the answer is lost", 500)
        ack = BatchAck(
            position=max(self.items, default=0),
            generation=self.desired.generation if self.desired else 0,
            want_facts=self.want_facts,
        )
        self.want_facts = False
        return reply(ack)

    def _store(self, batch: Batch, size: int) -> None:
        self.batches.append(batch)
        self.sizes.append(size)
        self.facts = batch.facts or self.facts
        self.gpus |= {status.gpu: status for status in batch.gpus}
        self.replicas = self.replicas if batch.replicas is None else batch.replicas
        for record in batch.items:
            self.repeats += record.position in self.items
            self.items[record.position] = record.item

    async def _desired(self, request: web.Request) -> web.StreamResponse:
        have = int(request.query["generation"])
        if self.desired is None or self.desired.generation == have:
            self._moved.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._moved.wait(), POLL_S)
        return reply(self.desired)
