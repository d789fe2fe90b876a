"""The nodes that are not there: they report over kept connections, and beat in their turn once they have joined."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.bench.fleet_load import Caller, batch

GPUS = 8
BEAT_S = 10.0
STEP_S = 0.004  # between two looks at whose turn it is: agents know nothing of each other and do not speak at once
CALLERS = 64
DRAIN_S = 10.0  # for the last heartbeats to be answered


class Pool:
    """Kept connections, each for one request at a time; opened when they are needed."""

    def __init__(self, port: int, size: int) -> None:
        self._port = port
        self._free: asyncio.Queue[Caller | None] = asyncio.Queue()
        for _ in range(size):
            self._free.put_nowait(None)

    async def open(self) -> None:
        """Open all, one after the other."""
        for _ in range(self._free.qsize()):
            self._free.put_nowait(self._free.get_nowait() or await Caller.open(self._port))

    async def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        """The answer's body. Raises RuntimeError if it is no 200."""
        caller = await self._free.get()
        try:
            while True:
                kept, caller = caller is not None, caller or await Caller.open(self._port)
                try:
                    return await caller.call(method, path, body)
                except (EOFError, ConnectionError):  # a server closes what was idle for too long
                    if not kept:
                        raise
                    caller = None
        except RuntimeError:
            raise
        except BaseException:  # what still comes over it is no answer to the next request
            if caller is not None:
                caller.close()
            caller = None
            raise
        finally:
            self._free.put_nowait(caller)


class Fleet:
    """The nodes. Heartbeats, other reports and questions have connections of their own."""

    def __init__(self, port: int, nodes: int, readings: int) -> None:
        self.readings = readings
        self.names = [f"gpu-{n:05d}" for n in range(nodes)]
        self.positions = dict.fromkeys(self.names, 0)
        self.port = port
        self.joined: set[str] = set()  # nodes that were heard: they beat
        self.waiting: set[str] = set()  # those whose last heartbeat was not answered: they send no other one
        self.took: list[float] = []  # seconds until heartbeats were answered
        self.sent_away = 0  # reports that were answered with 503 and went again
        self.connect()

    def connect(self) -> None:
        """Begin with new connections."""
        self._beats, self._questions = Pool(self.port, CALLERS), Pool(self.port, 1)
        self.connect_reports(CALLERS)

    def connect_reports(self, size: int) -> None:
        """Begin with so many new connections for reports that are no heartbeats."""
        self.reports = Pool(self.port, size)

    async def ask(self, path: str) -> tuple[float, bytes]:
        """A question of a person or program: seconds and the answer's body."""
        began = time.perf_counter()
        answer = await self._questions.call("GET", path)
        return time.perf_counter() - began, answer

    async def report(self, body: bytes) -> float:
        """A batch; seconds until it was stored, with all that it took where it was told to come again."""
        return await self._sent(self.reports, body)

    async def join(self, name: str, body: bytes) -> float:
        """The first batch of a node."""
        took = await self.report(body)
        self.joined.add(name)
        return took

    async def _sent(self, pool: Pool, body: bytes) -> float:
        began = time.perf_counter()
        while True:
            try:
                await pool.call("POST", "/api/v1/agent/batch", body)
                return time.perf_counter() - began
            except RuntimeError as error:
                if "503" not in str(error):
                    raise
                self.sent_away += 1
                await asyncio.sleep(1.0)

    async def beat(self, stop: asyncio.Event) -> None:
        """Every node in its turn, spread over the period, until told to stop."""
        began, count = time.monotonic(), 0
        async with asyncio.TaskGroup() as tasks:
            while not stop.is_set():
                due = int((time.monotonic() - began) / BEAT_S * len(self.names))
                for number in range(count, due):
                    name = self.names[number % len(self.names)]
                    if name in self.joined and name not in self.waiting:
                        tasks.create_task(self._beat(name, number // len(self.names) * self.readings % GPUS))
                count = max(count, due)
                await asyncio.sleep(STEP_S)

    async def _beat(self, name: str, gpu: int) -> None:
        self.waiting.add(name)
        try:
            self.took.append(await self._sent(self._beats, batch(name, gpu=gpu, readings=self.readings)))
        finally:
            self.waiting.discard(name)

    async def calm(self) -> float:
        """Wait, beside heartbeats, until hardly any waits for its answer; seconds that it took."""
        began = time.monotonic()
        while True:
            await asyncio.sleep(BEAT_S / 2)
            if len(self.waiting) <= CALLERS // 2:
                return time.monotonic() - began

    def fault(self, name: str, gpu: int, code: str, count: int = 1) -> bytes:
        """A batch with this many events, each of another moment."""
        self.positions[name] += count
        return batch(name, gpu=gpu, events=(code, count, self.positions[name]))


@asynccontextmanager
async def beating(fleet: Fleet) -> AsyncIterator[None]:
    """Heartbeats beside what is done within."""
    stop = asyncio.Event()
    task = asyncio.create_task(fleet.beat(stop))
    try:
        yield
    finally:
        stop.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await task
