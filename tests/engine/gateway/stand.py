"""A gateway between a small controller and fake replicas, all of them real servers on this machine."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from engine.gateway.config import GatewayConfig
from engine.gateway.gateway import Gateway
from engine.gateway.table import Standing
from tests.fakes.replicas import FakeReplica
from tests.ports import free_ports
from vocab.clock import SystemClock

PATIENCE_S = 60.0


class SmallController:
    """Answers the replica list, whatever it is told to, and keeps what it hears of nodes."""

    def __init__(self) -> None:
        self.replicas: list[dict[str, Any]] = []
        self.reaches: list[dict[str, Any]] = []
        self.port = free_ports(1)[0]
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _answer(self, _: web.Request) -> web.Response:
        return web.json_response(self.replicas)

    async def _hear(self, request: web.Request) -> web.Response:
        self.reaches.append(await request.json())
        return web.json_response({"noted": []})

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/api/v1/replicas", self._answer)
        app.router.add_post("/api/v1/gateway/reach", self._hear)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None


class Stand:
    """Use ``serve`` to have replicas listed and routable, then ``ask`` or ``stream`` through the gateway."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.controller = SmallController()
        self.programs: dict[str, FakeReplica] = {}
        self.hold_s = 10.0
        self.gateway: Gateway | None = None
        self._stop, self._hurry = asyncio.Event(), asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self.session: aiohttp.ClientSession | None = None

    # -- the rooms --------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Start the gateway (and nothing else)."""
        config = GatewayConfig(
            listen="127.0.0.1:0",
            controller=self.controller.url,
            state_dir=self.folder / "gateway",
            hold_s=self.hold_s,
            drain_s=PATIENCE_S,
        )
        self._stop, self._hurry = asyncio.Event(), asyncio.Event()
        self.gateway = Gateway(config, SystemClock())
        self._running = asyncio.create_task(self.gateway.run(self._stop, self._hurry))
        self.session = self.session or aiohttp.ClientSession()
        await self.until(lambda: self._running.done() or self.gateway.address[1], "the gateway listens")
        if self._running.done():
            await self._running

    def stop(self) -> asyncio.Task[None]:
        """Tell the gateway to stop; its task ends when it has."""
        assert self._running is not None
        self._stop.set()
        return self._running

    async def close(self) -> None:
        """Leave nothing behind."""
        if self.session is not None:
            await self.session.close()
        self._hurry.set()
        if self._running is not None:
            await asyncio.gather(self.stop(), return_exceptions=True)
        await self.controller.stop()
        for program in self.programs.values():
            await program.kill()

    async def start(
        self, *names: str, deployment: str = "chat", kind: type[FakeReplica] = FakeReplica, **options: Any
    ) -> None:
        """Start fake replicas."""
        made = [kind(name, self.folder, deployment, **options) for name in names]
        self.programs |= {each.replica: each for each in made}
        await asyncio.gather(*(each.start() for each in made))

    def listing(self, *names: str, **more: Any) -> list[dict[str, Any]]:
        """These replicas as the controller lists them; keys that the gateway does not know included."""
        found = [self.programs[name] for name in names or self.programs]
        return [
            {"replica": each.replica, "deployment": each.deployment, "state": "ready", "url": each.url,
             "node": "n1", "gpus": ["GPU-1"], "admitting": True, "ready": True, "model": "fake", **more}
            for each in found
        ]  # fmt: skip

    async def serve(self, *names: str, **options: Any) -> None:
        """A gateway to which these replicas are routable."""
        await self.start(*names, **options)
        self.controller.replicas = self.listing()
        await self.controller.start()
        await self.open()
        await self.stands(Standing.READY, *names)

    # -- what is seen -----------------------------------------------------------------------------------

    async def until(self, condition: Callable[[], Any], what: str) -> None:
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while not condition():
            assert asyncio.get_running_loop().time() < deadline, f"never happened: {what}"
            await asyncio.sleep(0.02)

    async def stands(self, standing: Standing | None, *names: str) -> None:
        """Wait until the gateway thinks so of these replicas."""
        assert self.gateway is not None
        board = self.gateway.board
        await self.until(lambda: {board.standing(name) for name in names} == {standing}, f"{names} {standing}")

    @property
    def url(self) -> str:
        assert self.gateway is not None
        return f"http://127.0.0.1:{self.gateway.address[1]}"

    def metric(self, name: str, **labels: str) -> float:
        """The value of one series; 0 if it is not there."""
        assert self.gateway is not None
        return self.gateway.export.exposition.registry.get_sample_value(name, labels) or 0.0

    def post(self, model: str = "chat", path: str = "/v1/chat/completions", **body: Any) -> Any:
        """A completion through the gateway; an async context manager of its response."""
        assert self.session is not None
        prompt = {"messages": [{"role": "user", "content": body.pop("say", "hello")}]}
        return self.session.post(self.url + path, json={"model": model, **prompt, **body})

    async def ask(self, **body: Any) -> tuple[int, Any, str | None]:
        """Status, body and answering replica of a completion that does not stream."""
        async with self.post(**body) as response:
            return response.status, await response.json(), response.headers.get("x-corral-replica")
