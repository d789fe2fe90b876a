"""The fake vLLM's server, with the faults that were observed on 0.32.

- /health answers 200 while the engine core is wedged and while it drains; 503 only once the core is dead.
- SIGTERM without a shutdown time-out: the port refuses at once, each stream gets an error object and [DONE].
- SIGTERM with one: what is open goes on, new work gets HTTP 500, the port closes with the last stream.
- A request that is still open when that time is over: the core is killed, the port closes, and the server waits for
  its client for ever; further SIGTERMs change nothing.

POST /control {"wedged": bool, "slow_s": seconds before any answer, "core": "kill"} makes it fail.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator

import msgspec
from aiohttp import web

from tests.fakes.vllm.meters import Meters
from tests.fakes.vllm.options import Options
from tests.fakes.vllm.processes import start_core

ISSUE = "EngineCore encountered an issue. See stack trace (above) for the root cause."
EXIT_S = 0.3  # the real one takes up to 3 s to go


class Control(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How it is to fail from now on."""

    wedged: bool = False
    slow_s: float = 0.0
    core: str = ""


class Ask(msgspec.Struct):
    """What it reads of a request."""

    model: str = ""
    stream: bool = False
    max_tokens: int = 16


class Dead(Exception):
    """The engine core is gone, or told to go."""


def error(message: str, status: int, kind: str = "InternalServerError") -> dict[str, object]:
    return {"error": {"message": message, "type": kind, "param": None, "code": status}}


class Server:
    """One fake vLLM."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.meters = Meters(options.served_model_name)
        self.core = start_core(options.clients, options.gpus[: options.tensor_parallel_size])
        self.control = Control()
        self.open = 0
        self.drains = self.cut = self.stuck = False
        self.over = asyncio.Event()
        self.site: web.TCPSite | None = None

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: loop.create_task(self.terminate()))
        await asyncio.sleep(self.options.load_s)
        runner = web.AppRunner(self.app(), access_log=None, shutdown_timeout=EXIT_S)
        await runner.setup()
        self.site = web.TCPSite(runner, self.options.host, self.options.port, reuse_address=True)
        await self.site.start()
        print("INFO:     Application startup complete.", flush=True)
        await self.over.wait()
        await runner.cleanup()
        assert self.core.stdin is not None
        self.core.stdin.close()
        self.core.wait()
        return 0

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self.guarded])
        for path in ("/health", "/ping"):
            app.router.add_get(path, self.health)
        app.router.add_get("/metrics", self.metrics)
        app.router.add_get("/version", self.version)
        app.router.add_get("/load", self.load)
        app.router.add_get("/v1/models", self.models)
        app.router.add_post("/v1/chat/completions", self.complete)
        app.router.add_post("/v1/completions", self.complete)
        app.router.add_post("/control", self.controlled)
        return app

    @web.middleware
    async def guarded(self, request: web.Request, handler) -> web.StreamResponse:
        if request.path != "/control":
            await asyncio.sleep(self.control.slow_s)
        key = self.options.api_key
        if key and request.path.startswith("/v1") and request.headers.get("Authorization") != f"Bearer {key}":
            return web.json_response({"error": "Unauthorized"}, status=401)
        return await handler(request)

    # -- state ------------------------------------------------------------------------------------------

    @property
    def dead(self) -> bool:
        return self.core.poll() is not None

    async def terminate(self) -> None:
        if self.drains:
            return
        if self.site is None:  # it still loads
            self.over.set()
            return
        self.drains = True
        deadline = time.monotonic() + self.options.shutdown_timeout
        while self.open and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        if self.open and self.options.shutdown_timeout:
            self.stuck = True
            self.core.kill()
            await self.site.stop()
            return
        self.cut = True
        await self.site.stop()
        await asyncio.sleep(EXIT_S)
        self.over.set()

    # -- doors ------------------------------------------------------------------------------------------

    async def health(self, _: web.Request) -> web.Response:
        return web.Response(status=503 if self.dead else 200)

    async def metrics(self, _: web.Request) -> web.Response:
        self.meters.set("num_requests_running", self.open)
        return web.Response(body=self.meters.render(), content_type="text/plain")

    async def version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": "0.32.0"})

    async def load(self, _: web.Request) -> web.Response:
        return web.json_response({"server_load": self.open})

    async def models(self, _: web.Request) -> web.Response:
        model = {"id": self.options.served_model_name, "object": "model", "owned_by": "vllm",
                 "root": self.options.model, "parent": None, "max_model_len": 2048}  # fmt: skip
        return web.json_response({"object": "list", "data": [model]})

    async def controlled(self, request: web.Request) -> web.Response:
        self.control = msgspec.json.decode(await request.read(), type=Control)
        if self.control.core == "kill":
            self.core.kill()
        return web.json_response({"pid": os.getpid(), "core": self.core.pid})

    # -- requests ---------------------------------------------------------------------------------------

    async def tokens(self, ask: Ask) -> AsyncIterator[str]:
        """One token after the other, as long as the engine core works."""
        for number in range(ask.max_tokens):
            began = time.monotonic()
            while self.control.wedged or self.stuck or time.monotonic() < began + 1.0 / self.options.rate:
                if (self.cut or self.dead) and not self.stuck:
                    raise Dead
                await asyncio.sleep(0.005)
            self.meters.add("generation_tokens_total")
            self.meters.observe("iteration_tokens_total", 1)
            yield f"t{number} "

    async def complete(self, request: web.Request) -> web.StreamResponse:
        ask = msgspec.json.decode(await request.read(), type=Ask)
        if ask.model != self.options.served_model_name:
            text = f"The model `{ask.model}` does not exist."
            return web.json_response(error(text, 404, "NotFoundError"), status=404)
        if self.drains or self.dead:
            return web.json_response(error(ISSUE, 500), status=500)
        self.open += 1
        reason = "abort"
        try:
            answer = await (self.stream(request, ask) if ask.stream else self.whole(ask))
            reason = "error" if self.cut or self.dead else "length"
            return answer
        finally:
            self.open -= 1
            self.meters.add("request_success_total", finished_reason=reason)

    async def stream(self, request: web.Request, ask: Ask) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            async for text in self.tokens(ask):
                await response.write(b"data: " + msgspec.json.encode(self.chunk(ask, text)) + b"\n\n")
        except Dead:
            await response.write(b"data: " + msgspec.json.encode(error(ISSUE, 500)) + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    def chunk(self, ask: Ask, text: str) -> dict[str, object]:
        choice = {"index": 0, "delta": {"content": text}, "text": text, "finish_reason": None}
        return {"id": "cmpl-1", "object": "text_completion", "model": ask.model, "choices": [choice]}

    async def whole(self, ask: Ask) -> web.Response:
        try:
            text = "".join([token async for token in self.tokens(ask)])
        except Dead:
            return web.json_response(error(ISSUE, 500), status=500)
        choice = {"index": 0, "message": {"content": text}, "text": text, "finish_reason": "length"}
        return web.json_response({"id": "cmpl-1", "model": ask.model, "choices": [choice]})
