"""The fake replica's server: admission, streams, drain, beats."""

import asyncio
import os
import time
from collections.abc import Callable

import msgspec
from aiohttp import web

from tests.fakes.replica.misbehaviour import Misbehaviour
from tests.fakes.replica.options import Options
from vocab.beat import SIZE, Beat, pack
from vocab.errors import InputError
from vocab.metrics import ENGINE
from wire.exposition import Exposition
from wire.server import decode, reply

BEAT_EVERY_S = 0.1
CUT_OFF = 3


class Ask(msgspec.Struct):
    """What it reads of a request."""

    model: str
    stream: bool = False
    max_tokens: int = 16
    return_token_ids: bool = False


class DrainOrder(msgspec.Struct):
    """The body of POST /drain."""

    exit: bool = False
    ttl_s: float = 120.0
    reason: str = "draining"


class Service:
    """One fake replica; ``die`` ends it as a crash does."""

    def __init__(self, options: Options, die: Callable[[int], object] = os._exit) -> None:
        self.options = options
        self.die = die
        self.odd = Misbehaviour()
        self.rate = options.rate
        self.loaded_at = time.monotonic() + options.load_s
        self.closed: str | None = None  # why it does not admit
        self.deadline: float | None = None  # when an exit that was asked for cuts off
        self.open = self.tokens = self.step = self.ok = self.failed = self.seq = 0
        self.last_step_ns = 0
        self.over = asyncio.Event()
        self.exposition = Exposition(ENGINE)
        self.runner: web.AppRunner | None = None
        self.site: web.TCPSite | None = None

    async def run(self) -> int:
        self.runner = web.AppRunner(self.app(), access_log=None, shutdown_timeout=0.2)
        await self.runner.setup()
        await self.listen()
        beats = asyncio.create_task(self.beats())
        try:
            await self.over.wait()
            return CUT_OFF if self.open else 0
        finally:
            beats.cancel()
            await self.runner.cleanup()

    async def listen(self) -> None:
        assert self.runner is not None
        host, _, port = self.options.listen.rpartition(":")
        self.site = web.TCPSite(self.runner, host, int(port), reuse_address=True)
        await self.site.start()

    def app(self) -> web.Application:
        app = web.Application()
        for path in ("/ready", "/readyz"):
            app.router.add_get(path, self.ready)
        for path in ("/health", "/healthz"):
            app.router.add_get(path, self.health)
        app.router.add_get("/metrics", self.metrics)
        app.router.add_get("/v1/models", self.models)
        app.router.add_post("/v1/chat/completions", self.complete)
        app.router.add_post("/v1/completions", self.complete)
        app.router.add_post("/drain", self.drain)
        app.router.add_delete("/drain", self.reopen)
        app.router.add_post("/control", self.control)
        return app

    # -- state ------------------------------------------------------------------------------------------

    @property
    def loaded(self) -> bool:
        return time.monotonic() >= self.loaded_at

    def reason(self) -> str:
        return "" if self.loaded and self.closed is None else (self.closed or "loading")

    def terminate(self) -> None:
        if self.options.deaf:
            return
        if self.deadline is not None:
            self.over.set()
        self.begin_exit(self.options.drain_s)

    def begin_exit(self, ttl_s: float) -> None:
        self.closed = "draining"
        self.deadline = min(self.deadline or float("inf"), time.monotonic() + ttl_s)

    async def beats(self) -> None:
        """Write the pulse; also notice that a drain is over."""
        while True:
            self.write_beat()
            if self.deadline is not None and (self.open == 0 or time.monotonic() > self.deadline):
                self.over.set()
            await asyncio.sleep(BEAT_EVERY_S)

    def write_beat(self) -> None:
        self.seq += 2
        beat = Beat(
            pid=os.getpid(),
            ready=self.loaded,
            admitting=self.loaded and self.closed is None,
            draining=self.deadline is not None,
            step=self.step,
            tokens=self.tokens,
            running=self.open,
            open_requests=self.open,
            last_step_ns=self.last_step_ns,
            written_ns=time.monotonic_ns(),
            requests_ok=self.ok,
            requests_failed=self.failed,
        )
        handle = os.open(self.options.beat, os.O_RDWR | os.O_CREAT, 0o640)
        try:
            os.pwrite(handle, pack(beat, self.seq), 0)
            os.ftruncate(handle, SIZE)
        finally:
            os.close(handle)

    # -- doors ------------------------------------------------------------------------------------------

    async def thaw(self) -> None:
        while self.odd.frozen:
            await asyncio.sleep(0.05)

    async def ready(self, _: web.Request) -> web.Response:
        await self.thaw()
        ready = self.odd.ready if self.odd.ready is not None else not self.reason()
        body = {"ready": ready, "reason": self.reason(), "replica": self.options.replica}
        return reply(body, 200 if ready else 503)

    async def health(self, _: web.Request) -> web.Response:
        await self.thaw()
        return reply({"status": "ok"})

    async def metrics(self, _: web.Request) -> web.Response:
        body, kind = self.exposition.render()
        return web.Response(body=body, headers={"Content-Type": kind})

    async def models(self, _: web.Request) -> web.Response:
        return reply({"object": "list", "data": [{"id": self.options.served_name, "object": "model"}]})

    async def drain(self, request: web.Request) -> web.Response:
        order = decode(await request.read(), DrainOrder)
        if self.options.deaf:
            await asyncio.Event().wait()
        if order.exit:
            self.begin_exit(order.ttl_s)
        elif self.deadline is None:
            self.closed = order.reason
        return reply({"open_requests": self.open})

    async def reopen(self, _: web.Request) -> web.Response:
        if self.deadline is not None:
            return reply({"error": {"message": "it exits", "type": "unavailable", "code": "draining"}}, 409)
        self.closed = None
        return reply({"open_requests": self.open})

    async def control(self, request: web.Request) -> web.Response:
        self.odd = decode(await request.read(), Misbehaviour)
        self.rate = self.odd.rate or self.rate
        if self.odd.refuse_s is not None:
            self.closing = asyncio.create_task(self.refuse(self.odd.refuse_s))
        return reply({"pid": os.getpid(), "open": self.open})

    async def refuse(self, seconds: float) -> None:
        assert self.site is not None
        await self.site.stop()
        await asyncio.sleep(seconds)
        await self.listen()

    # -- requests ---------------------------------------------------------------------------------------

    async def complete(self, request: web.Request) -> web.StreamResponse:
        await self.thaw()
        try:
            ask = decode(await request.read(), Ask)
        except InputError as error:
            return reply({"error": {"message": str(error), "type": "invalid_request_error", "code": None}}, 400)
        panic = request.headers.get("x-corral-panic") == "1" and self.closed == "fenced"
        if self.reason() and not panic:
            return self.unavailable(self.reason())
        odd, self.odd = self.odd, self.odd.spent() if self.odd.fail else self.odd
        if odd.fail == "503":
            return self.unavailable("overloaded")
        if odd.fail == "500":
            self.failed += 1
            return reply({"error": {"message": "it broke", "type": "server_error", "code": "internal"}}, 500)
        if odd.fail == "exit":
            self.die(1)
        if odd.fail in {"exit", "reset"}:
            return self.drop(request)
        self.open += 1
        try:
            if odd.fail == "hang":
                await asyncio.Event().wait()
            answer = await (self.stream(request, ask, odd) if ask.stream else self.whole(request, ask, odd))
            self.ok += 1
            return answer
        finally:
            self.open -= 1

    def unavailable(self, code: str) -> web.Response:
        message = f"replica {self.options.replica} does not admit: {code}"
        body = {"error": {"message": message, "type": "unavailable", "code": code}}
        return reply(body, 503, {"Retry-After": "1"})

    def drop(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def token(self) -> str:
        await asyncio.sleep(1.0 / self.rate)
        self.step += 1
        self.tokens += 1
        self.last_step_ns = time.monotonic_ns()
        return f"t{self.tokens} "

    def fails_now(self, odd: Misbehaviour, sent: int) -> bool:
        if odd.fail == "exit_midway" and sent == odd.after:
            self.die(1)
        return odd.fail in {"die", "exit_midway"} and sent == odd.after

    async def stream(self, request: web.Request, ask: Ask, odd: Misbehaviour) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await response.prepare(request)
        for sent in range(ask.max_tokens):
            if self.fails_now(odd, sent):
                self.drop(request)
                return response
            text = await self.token()
            last = sent == ask.max_tokens - 1
            await response.write(b"data: " + msgspec.json.encode(self.chunk(ask, text, last=last)) + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    def chunk(self, ask: Ask, text: str, *, last: bool) -> dict[str, object]:
        choice: dict[str, object] = {
            "index": 0,
            "delta": {"role": "assistant", "content": text},
            "text": text,
            "finish_reason": "length" if last else None,
        }
        if ask.return_token_ids:
            choice["token_ids"] = [self.tokens]
        return {"id": "cmpl-1", "object": "chat.completion.chunk", "model": ask.model, "choices": [choice]}

    async def whole(self, request: web.Request, ask: Ask, odd: Misbehaviour) -> web.Response:
        words = []
        for sent in range(ask.max_tokens):
            if self.fails_now(odd, sent):
                return self.drop(request)
            words.append(await self.token())
        text = "".join(words)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "text": text,
            "finish_reason": "length",
        }
        usage = {"prompt_tokens": 1, "completion_tokens": ask.max_tokens, "total_tokens": 1 + ask.max_tokens}
        return reply(
            {"id": "cmpl-1", "object": "chat.completion", "model": ask.model, "choices": [choice], "usage": usage}
        )
