"""The controller put together: store, mind, conductor, interface and pages; started and stopped in order."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex
from socket import gethostname

from aiohttp import web

from controller.api.agents import Agents
from controller.api.beats import Beats
from controller.api.bundle import Bundles
from controller.api.cards import Cards
from controller.api.maintenance import Maintenance
from controller.api.openapi import document
from controller.api.orders import Orders
from controller.api.policies import Policies
from controller.api.reads import Reads
from controller.api.rollups import RollupRoutes
from controller.api.route import Route, add_routes
from controller.api.tokens import TokenRoutes
from controller.api.verdicts import Verdicts
from controller.api.versions import VersionRoutes
from controller.config import Config
from controller.deciding import rulebook
from controller.deciding.conductor import Conductor
from controller.deciding.dispatch import Dispatch
from controller.deciding.mind import MakeCore, Mind, real_core
from controller.door.access import Access
from controller.door.guard import guard
from controller.door.limits import Rates
from controller.door.tokens import Tokens
from controller.evidence.parts import Parts
from controller.evidence.records import AgentRecords
from controller.evidence.shelf import Shelf
from controller.evidence.shelving import Shelving
from controller.housekeeping import Housekeeping
from controller.lasting import lasting
from controller.lemons import Lemons
from controller.liveness import Liveness
from controller.lock import only_controller
from controller.outward.keepers import keepers
from controller.outward.powering import Powering, powers
from controller.outward.silences import Silences
from controller.outward.webhooks import Webhook
from controller.pages.frame import Frame
from controller.pages.looking import Looking
from controller.pages.ordering import Ordering
from controller.pages.orders import Forms
from controller.pages.pages import FORMS, OPEN_PATHS, ROLES, SHOWS, Pages
from controller.pages.recent import Recent
from controller.pages.ruling import Ruling
from controller.pages.signing import Signing
from controller.rehearsing.rehearsing import Rehearsing
from controller.several.reports import Reports
from controller.several.shared import Shared
from controller.store import form, policies
from controller.store.store import Store
from controller.telling.export import Export, Snapshot
from controller.telling.watch import Watch
from vocab.clock import Clock
from vocab.errors import ConfigError, Unreachable
from vocab.roles import LOOKS
from wire import server
from wire.quick import QUICK
from wire.tls import Contexts

log = logging.getLogger(__name__)

VERSION = version("corral")


class Controller:
    """All parts of one controller, wired; ``running`` gives them life."""

    def __init__(
        self, config: Config, store: Store, clock: Clock, make_core: MakeCore = real_core, beside: Store | None = None
    ) -> None:
        self.config = config
        self.store = store
        self.export = Export(VERSION)
        self.watch = Watch(self.export.dropped)
        self.dispatch = Dispatch()
        self.reports = Reports(clock)
        self.mind = Mind(config, store, self.dispatch, make_core)
        self.name = f"{config.name or gethostname()}/{token_hex(3)}"  # another one each time: its rows are its own
        self.shared = Shared(store, beside, self.name, clock, self.reports) if beside is not None else None
        self.conductor = Conductor(store, self.mind, self.watch, clock, self.export, self.shared)
        self.tls = Contexts(config.tls)
        self.liveness = Liveness(self.conductor, self.tls.client)
        self.powering = Powering(self.conductor, clock, powers(config.power, config.nodes_of))
        self.tokens = Tokens(store, clock)
        self.rehearsing = Rehearsing()
        self.lemons = Lemons(store, self.conductor, clock, config.lemons)
        self.housekeeping = Housekeeping(store, clock, self.export, config.keep_days, self._leads, self.lemons)
        records = AgentRecords(self.tls.client, config.agents_token_path)
        self.recent = Recent(records, clock)
        self.parts = Parts(self.conductor, store, records)
        self.shelf = Shelf(Path(config.state_dir) / "bundles")
        self.shelving = Shelving(self.conductor, store, self.parts, self.shelf, clock, self.export)
        self.webhooks = [Webhook(each, self.conductor, store, clock, self.export) for each in config.webhooks]
        self.keepers = keepers(config, self.conductor, clock, self.export)
        self.export.snapshot = self._snapshot
        self._clock = clock

    def _leads(self) -> bool:
        return self.conductor.leads

    def _snapshot(self) -> Snapshot:
        leader = self.shared.leader if self.shared is not None else None
        return Snapshot(
            view=self.conductor.look() if self.conductor.leads else None,  # the fleet is told once, not by each
            decides=self.conductor.leads,
            lease_age_s=leader.age_s if leader is not None else None,
            behind_s=self.conductor.behind_s,
            report_ages_s=self.reports.ages_s(),
            ahead_s=self.reports.ahead_s(),
            readers=self.watch.readers,
            seq=self.conductor.seq,
        )

    def app(self, token: str | None) -> web.Application:
        """The whole HTTP side."""
        access = Access(token, self.tokens, certified=self.config.tls_client_ca is not None, clock=self._clock)
        agents = Agents(self.conductor, self.dispatch, self.reports, self.export, self.config.gateways)
        routes = self._routes(access, agents)
        roles = {("GET", path): LOOKS for path in ("/metrics", "/openapi.json")}
        roles.update({(route.method, route.path): route.may for route in routes} | ROLES)
        rates = Rates(self._clock, per_s=self.config.requests_per_s)
        app = server.make_app(
            ready=lambda: self.conductor.ready, metrics=self.export, gate=access.gate(OPEN_PATHS, roles, rates, SHOWS)
        )
        local_only = token is None and self.config.loopback
        app.middlewares.append(guard(local_only=local_only, forms=FORMS))
        app[QUICK] = Beats(agents, access, rates, local_only=local_only)
        add_routes(app, routes)
        page = document(routes, VERSION)

        async def openapi(_: web.Request) -> web.Response:
            return server.reply(page)

        app.router.add_get("/openapi.json", openapi)
        self._pages(access, routes).add_to(app)
        return app

    def _pages(self, access: Access, routes: list[Route]) -> Pages:
        forms = Forms(routes)
        frame = Frame(VERSION, access, forms, self._clock)
        reads = Reads(self.conductor, self.store, self.watch)
        looking = Looking(frame, self.conductor, self.store, reads, self.recent, self._clock, self.config.gateways)
        ruling = Ruling(frame, self.conductor, self.store, reads, self._clock)
        return Pages(frame, looking, ruling, Ordering(frame, forms, access, self.conductor), Signing(frame, access))

    def _routes(self, access: Access, agents: Agents) -> list[Route]:
        return [
            *Reads(self.conductor, self.store, self.watch).routes(),
            *Bundles(self.store, self.parts, self.shelf).routes(),
            *Orders(self.conductor, self._clock).routes(),
            *agents.routes(),
            *TokenRoutes(self.tokens, access).routes(),
            *Policies(self.conductor, self.store, self._clock, self.rehearsing).routes(),
            *Cards(self.store, self.lemons).routes(),
            *RollupRoutes(self.store, self.config.nodes_of).routes(),
            *Verdicts(self.conductor, self.store, self._clock).routes(),
            *VersionRoutes(self.conductor).routes(),
            *Maintenance(self.conductor, self._clock).routes(),
        ]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[web.AppRunner]:
        """Serve; on leaving, end streams and polls, answer what is under way, then stop thinking."""
        token = server.read_token(self.config.token_path)
        with contextlib.suppress(Unreachable):  # the store is away: they are read again in a moment
            await self.tokens.load()
        async with AsyncExitStack() as stack:
            runner = await server.listen(self.app(token), self.config.listen, token=token, tls=self.tls.server)
            await stack.enter_async_context(self.tls.renewing())
            thinking = asyncio.create_task(self.conductor.run(), name="conductor")
            looking = asyncio.create_task(lasting("liveness", self.liveness.run), name="liveness")
            knowing = asyncio.create_task(lasting("tokens", self.tokens.run), name="tokens")
            drawing = asyncio.create_task(lasting("drawing", self.conductor.draw), name="drawing")
            powering = asyncio.create_task(lasting("powering", self.powering.run), name="powering")
            shelving = asyncio.create_task(lasting("bundles", self.shelving.run), name="bundles")
            stack.push_async_callback(_end, thinking)
            stack.push_async_callback(_end, knowing)
            stack.push_async_callback(runner.cleanup)
            stack.push_async_callback(_end, looking)
            for keeper in self.keepers:
                stack.push_async_callback(_end, asyncio.create_task(lasting("keeper", keeper.run), name="keeper"))
            stack.push_async_callback(_end, drawing)
            stack.push_async_callback(_end, powering)
            stack.push_async_callback(_end, shelving)
            for webhook in self.webhooks:
                stack.push_async_callback(_end, asyncio.create_task(lasting("webhook", webhook.run), name="webhook"))
            if self.config.alertmanager is not None:
                silences = Silences(self.config.alertmanager, self.conductor)
                task = asyncio.create_task(lasting("silences", silences.run), name="silences")
                stack.push_async_callback(_end, task)
            self.housekeeping.start()
            stack.callback(self.housekeeping.stop)
            stack.callback(self.dispatch.wake_all)
            stack.callback(self.watch.close)
            stack.callback(self.rehearsing.close)
            self.thinking = thinking
            yield runner


@asynccontextmanager
async def controller(config: Config, clock: Clock, make_core: MakeCore = real_core) -> AsyncIterator[Controller]:
    """A controller with its database locked, migrated and open; not yet serving. Raises ConfigError."""
    with only_controller(Path(config.state_dir)):
        async with AsyncExitStack() as stack:
            store = await Store.open(config.place)
            stack.push_async_callback(store.close)
            await _check_policy(config, store)
            beside = Store(config.place) if config.place.shared else None
            if beside is not None:
                stack.push_async_callback(beside.close)
            made = Controller(config, store, clock, make_core, beside)
            if made.shared is not None:
                stack.push_async_callback(made.shared.leader.resign)
            yield made


async def _check_policy(config: Config, store: Store) -> None:
    """Before anything serves: of a form that we know, and a policy that can be adopted. Raises ConfigError."""
    with contextlib.suppress(Unreachable):  # the store is away: it is found out once it is back
        async with store.reading() as connection:
            written = await form.stored(connection)
            adopted = await policies.last_number(connection)
        if written > form.FORM:
            raise ConfigError(
                f"database {config.place} was written by a newer version (form {written}, this one knows {form.FORM});"
                " install that version or restore a copy"
            )
        if adopted is None:
            rulebook.first(config)


async def _end(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait([task])
