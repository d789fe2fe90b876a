"""A replica inside the test's own process, with a real socket, whose steps happen when the test says so."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from engine.api.server import application
from engine.api.service import Service
from engine.config import EngineConfig
from engine.core.sequence import Step
from engine.loading import Loaded, load_model
from vocab.clock import SystemClock
from wire.server import listen

WAIT_S = 60.0  # under tenfold load tests of a second were seen to take 25


def settings(folder: Path, **changes: Any) -> EngineConfig:
    """Flags of a replica that serves the model in ``folder`` as ``tiny``."""
    given = EngineConfig(
        replica="r1", model=str(folder), served_name="tiny", listen="127.0.0.1:0", beat=folder.parent / "beat", kv_mib=8
    )
    return msgspec.structs.replace(given, **changes)


class PacedRunner:
    """A runner that waits for a permit before each step; ``free`` lets it run."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._permits = threading.Semaphore(0)
        self._free = False
        self.steps: list[Step] = []

    def run(self, step: Step) -> list[int]:
        """The inner runner's answer, when the test allows it."""
        if not self._free:
            self._permits.acquire()
        self.steps.append(step)
        return self._inner.run(step)

    def allow(self, steps: int) -> None:
        """Let this many steps happen."""
        self._permits.release(steps)

    def free(self) -> None:
        """Let all steps happen from now on."""
        self._free = True
        self._permits.release()


class BrokenRunner:
    """A runner whose device has gone."""

    def run(self, step: Step) -> list[int]:
        """Fail as torch does."""
        raise RuntimeError("CUDA error: an illegal memory access was encountered")


class Replica:
    """What a test talks to."""

    def __init__(self, service: Service, base: str, session: aiohttp.ClientSession) -> None:
        self.service = service
        self.base = base
        self.session = session
        self.over = asyncio.create_task(service.until_over())
        self.pace: PacedRunner | None = None

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
        """(status, decoded body, headers)."""
        data = body if isinstance(body, bytes) else None if body is None else msgspec.json.encode(body)
        async with self.session.request(method, self.base + path, data=data, headers=headers) as answer:
            raw = await answer.read()
            return answer.status, msgspec.json.decode(raw) if raw.startswith((b"{", b"[")) else raw, answer.headers

    async def complete(self, prompt: Any = "the tin can", **wish: Any) -> tuple[int, Any, Any]:
        """POST /v1/completions, greedy unless told otherwise."""
        return await self.call("POST", "/v1/completions", {"model": "tiny", "prompt": prompt, "temperature": 0, **wish})

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait for a condition."""
        deadline = asyncio.get_running_loop().time() + WAIT_S
        while not true():
            assert asyncio.get_running_loop().time() < deadline, "the condition did not come"
            await asyncio.sleep(0.005)


async def events(answer: aiohttp.ClientResponse) -> list[Any]:
    """The chunks of a stream, up to its end; the last is ``[DONE]`` of a whole one."""
    found = []
    async for line in answer.content:
        if line.startswith(b"data: "):
            text = line.removeprefix(b"data: ").strip()
            found.append("[DONE]" if text == b"[DONE]" else msgspec.json.decode(text))
    return found


@asynccontextmanager
async def replica(config: EngineConfig, *, paced: bool = False, broken: bool = False, loaded: bool = True,
                  token: str | None = None, given: Loaded | None = None) -> AsyncIterator[Replica]:  # fmt: skip
    """A replica that serves; with ``loaded`` False it goes on loading until the test ends.

    ``given``: a model that is there already.
    """
    hold = threading.Event()
    made: list[PacedRunner] = []

    def load() -> Loaded:
        if not loaded:
            hold.wait()
        model = given or load_model(config)
        if broken:
            model.runner = BrokenRunner()  # type: ignore[assignment]
        if paced:
            made.append(PacedRunner(model.runner))
            model.runner = made[0]  # type: ignore[assignment]
        return model

    service = Service(config, load, SystemClock())
    runner = await listen(application(service, token), config.listen, token=token, cancel_on_disconnect=True)
    service.start()
    async with aiohttp.ClientSession() as session:
        host, port = runner.addresses[0][:2]
        here = Replica(service, f"http://{host}:{port}", session)
        try:
            if loaded:
                await here.until(lambda: service.loaded is not None)
            here.pace = made[0] if made else None
            yield here
        finally:
            hold.set()
            for pace in made:
                pace.free()
            here.over.cancel()
            await session.close()
            await runner.cleanup()
            assert await asyncio.to_thread(service.steps.close, WAIT_S)
