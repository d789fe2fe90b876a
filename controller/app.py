"""The controller put together: store, mind, conductor, interface and pages; started and stopped in order."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from pathlib import Path

from aiohttp import web

from controller.api.agents import Agents
from controller.api.openapi import document
from controller.api.orders import Orders
from controller.api.reads import Reads
from controller.api.route import add_routes
from controller.conductor import Conductor
from controller.config import Config
from controller.dispatch import Dispatch
from controller.export import Export, Snapshot
from controller.guard import guard
from controller.housekeeping import Housekeeping
from controller.liveness import Liveness
from controller.lock import only_controller
from controller.mind import MakeCore, Mind, real_core
from controller.pages import OPEN_PATHS, Pages
from controller.reports import Reports
from controller.store.store import Store
from controller.watch import Watch
from vocab.clock import Clock
from vocab.errors import ConfigError
from wire import server

log = logging.getLogger(__name__)

VERSION = version("corral")


class Controller:
    """All parts of one controller, wired; ``running`` gives them life."""

    def __init__(self, config: Config, store: Store, clock: Clock, make_core: MakeCore = real_core) -> None:
        self.config = config
        self.store = store
        self.export = Export(VERSION)
        self.watch = Watch(self.export.dropped)
        self.dispatch = Dispatch()
        self.reports = Reports(clock)
        self.mind = Mind(config, store, self.dispatch, make_core)
        self.conductor = Conductor(store, self.mind, self.watch, clock, self.export)
        self.liveness = Liveness(self.conductor)
        self.housekeeping = Housekeeping(store, clock, self.export, config.keep_days)
        self.export.snapshot = self._snapshot
        self._clock = clock

    def _snapshot(self) -> Snapshot:
        return Snapshot(
            view=self.conductor.look(),
            report_ages_s=self.reports.ages_s(),
            readers=self.watch.readers,
            seq=self.conductor.seq,
        )

    def app(self, token: str | None) -> web.Application:
        """The whole HTTP side."""
        app = server.make_app(
            ready=lambda: self.conductor.ready, metrics=self.export, token=token, open_paths=OPEN_PATHS
        )
        app.middlewares.append(guard(local_only=token is None and self.config.loopback))
        routes = [
            *Reads(self.conductor, self.store, self.watch).routes(),
            *Orders(self.conductor, self._clock).routes(),
            *Agents(self.conductor, self.dispatch, self.reports, self.export, self.config.gateways).routes(),
        ]
        add_routes(app, routes)
        page = document(routes, VERSION)

        async def openapi(_: web.Request) -> web.Response:
            return server.reply(page)

        app.router.add_get("/openapi.json", openapi)
        Pages(VERSION).add_to(app)
        return app

    @asynccontextmanager
    async def running(self) -> AsyncIterator[web.AppRunner]:
        """Serve; on leaving, end streams and polls, answer what is under way, then stop thinking."""
        token = server.read_token(self.config.token_path)
        async with AsyncExitStack() as stack:
            runner = await server.listen(self.app(token), self.config.listen, token=token, tls=_tls(self.config))
            thinking = asyncio.create_task(self.conductor.run(), name="conductor")
            looking = asyncio.create_task(self.liveness.run(), name="liveness")
            stack.push_async_callback(_end, thinking)
            stack.push_async_callback(runner.cleanup)
            stack.push_async_callback(_end, looking)
            self.housekeeping.start()
            stack.callback(self.housekeeping.stop)
            stack.callback(self.dispatch.wake_all)
            stack.callback(self.watch.close)
            self.thinking = thinking
            yield runner


@asynccontextmanager
async def controller(config: Config, clock: Clock, make_core: MakeCore = real_core) -> AsyncIterator[Controller]:
    """A controller with its database locked, migrated and open; not yet serving. Raises ConfigError."""
    with only_controller(Path(config.state_dir)):
        store = await Store.open(config.place)
        try:
            yield Controller(config, store, clock, make_core)
        finally:
            await store.close()


def _tls(config: Config) -> ssl.SSLContext | None:
    if config.tls_cert is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(config.tls_cert, config.tls_key)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(f"tls_cert, tls_key: {config.tls_cert} cannot be used: {error}") from error
    return context


async def _end(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait([task])
