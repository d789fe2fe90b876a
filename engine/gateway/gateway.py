"""The gateway's rooms put together, and its life: open, serve, let streams end, close."""

import asyncio
import logging
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from aiohttp import web

from engine.gateway.app import Routes, build
from engine.gateway.board import Board
from engine.gateway.config import GatewayConfig
from engine.gateway.export import Export
from engine.gateway.probes import Probes
from engine.gateway.proxy import Proxy
from engine.gateway.reach import Reach
from engine.gateway.roster import Roster
from engine.gateway.upstream import Upstream
from vocab.clock import Clock
from vocab.errors import ConfigError
from wire.client import Client
from wire.notify import notify, watchdog_s
from wire.server import listen, read_token
from wire.tls import Contexts

log = logging.getLogger(__name__)


def _version() -> str:
    try:
        return version("corral")
    except PackageNotFoundError:
        return "unknown"


class Gateway:
    """One gateway; make it within the running event loop, then ``run``."""

    def __init__(self, config: GatewayConfig, clock: Clock) -> None:
        self._config = config
        self._token = read_token(config.token_file)
        self.tls = Contexts(config.tls)
        _make(config)
        self.export = Export(_version())
        self.board = Board(clock, self.export.follow)
        shown = read_token(config.controller_token_file) or self._token
        self._client = Client(config.controller, token=shown, tls=self.tls.client)
        self._roster = Roster(self.board, self._client, config.state_dir / "replicas.json", self.export.controller)
        self._reach = Reach(self.board, self._client, config.node or platform.node() or "localhost")
        self._upstream = Upstream(self.board)
        self._proxy = Proxy(self.board, self._upstream, self.export, config.hold_s)
        self._stopping = False
        self.address: tuple[str, int] = ("", 0)

    def _ready(self) -> tuple[bool, str]:
        if self._stopping:
            return False, "stopping"
        return self.board.informed, "ready" if self.board.informed else "no replica list yet"

    async def run(self, stop: asyncio.Event, hurry: asyncio.Event) -> None:
        """Serve until ``stop``, then let what is in flight end; ``hurry`` cuts that short. Raises ConfigError."""
        config = self._config
        app = build(Routes(self.board, self._proxy, self.export), self.export, self._ready, self._token)
        app.on_response_prepare.append(self._say_goodbye)
        self._roster.load()
        async with self._client, self._upstream, self.tls.renewing():
            runner = await listen(app, config.listen, token=self._token, tls=self.tls.server, cancel_on_disconnect=True)
            self.address = runner.addresses[0]
            works = [self._roster.run(), Probes(self.board).run(), self._reach.run(), _feed_watchdog()]
            tasks = [asyncio.ensure_future(work) for work in works]
            log.info("gateway serves", extra={"listen": config.listen, "controller": config.controller})
            notify("READY=1")
            try:
                await _first(stop, tasks)
                await self._let_end(runner, hurry)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await runner.cleanup()

    async def _say_goodbye(self, _: web.Request, response: web.StreamResponse) -> None:
        """Once it stops, each answer is the last on its connection: a busy client must go elsewhere for its next."""
        if self._stopping:
            response.headers["Connection"] = "close"
            response.force_close()

    async def _let_end(self, runner: web.AppRunner, hurry: asyncio.Event) -> None:
        """Take no new connections; wait for the streams, at most ``drain_s``."""
        self._stopping = True
        notify("STOPPING=1")
        for site in list(runner.sites):
            await site.stop()
        log.info("gateway stops", extra={"in_flight": self._proxy.in_flight})
        waits = {asyncio.ensure_future(event.wait()) for event in (self._proxy.idle, hurry)}
        await asyncio.wait(waits, timeout=self._config.drain_s, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        if self._proxy.in_flight:
            log.warning("streams are cut off", extra={"in_flight": self._proxy.in_flight})


async def _first(stop: asyncio.Event, tasks: list[asyncio.Task[None]]) -> None:
    """Wait for the stop; a room that ends by itself has failed, and the gateway with it."""
    stopped: asyncio.Task[Any] = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({stopped, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
    for task in tasks:
        if task.done():
            await task


async def _feed_watchdog() -> None:
    period_s = watchdog_s()
    while True:
        if period_s is not None:
            notify("WATCHDOG=1")
        await asyncio.sleep(period_s or 3600.0)


def _make(config: GatewayConfig) -> None:
    try:
        config.state_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"state_dir: cannot make {config.state_dir}: {error.strerror}") from error
