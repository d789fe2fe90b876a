"""The agent's HTTP API: what it sees and does, for people, the command line and Prometheus. All from memory."""

from collections.abc import Callable

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from agent.export import Export
from agent.hardware import Hardware
from agent.latest import Latest, SourceView
from agent.loop import Loop
from agent.ring import Ring
from agent.spool import Spool
from agent.uplink import Uplink
from agent.warden import Warden
from vocab.messages import NodeFacts, ReplicaStatus
from vocab.observations import GpuSample
from vocab.states import Level
from wire.server import make_app, reply


class GpuNow(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU: ``sample`` is None where the last is too old."""

    gpu: str
    index: int
    sample: GpuSample | None
    fenced: bool


class SpoolNow(msgspec.Struct, frozen=True, kw_only=True):
    """What waits for the controller."""

    items: int
    bytes: int
    dropped: int
    last: int


class ControllerNow(msgspec.Struct, frozen=True, kw_only=True):
    """The link to the controller."""

    url: str
    up: bool
    last_success: float | None
    generation: int


class NodeNow(msgspec.Struct, frozen=True, kw_only=True):
    """``GET /api/v1/node``."""

    node: str
    facts: NodeFacts | None
    level: Level
    paused: bool
    gpus: tuple[GpuNow, ...]
    replicas: tuple[ReplicaStatus, ...]
    fences: tuple[str, ...]
    sources: tuple[SourceView, ...]
    spool: SpoolNow
    controller: ControllerNow
    events_since: float | None = None  # since when events are remembered here


class Api:
    """The routes, over what the agent holds in memory."""

    def __init__(
        self,
        loop: Loop,
        latest: Latest,
        warden: Warden,
        spool: Spool,
        uplink: Uplink,
        controller: str,
        hardware: Hardware,
        ring: Ring,
    ) -> None:
        self._loop = loop
        self._latest = latest
        self._warden = warden
        self._spool = spool
        self._uplink = uplink
        self._controller = controller
        self._hardware = hardware
        self._ring = ring

    def app(self, export: Export, token: str | None) -> web.Application:
        """The application, with /healthz, /readyz and /metrics."""
        app = make_app(ready=self._latest.ready, metrics=export.exposition, token=token)
        app.middlewares.append(_refreshed(lambda: self._refresh(export)))
        app.middlewares.append(_everything(export))
        app.router.add_get("/api/v1/node", self._node)
        app.router.add_get("/api/v1/events", self._events)
        app.router.add_get("/api/v1/recording", self._recording)
        app.router.add_post("/api/v1/drills", self._drills)
        return app

    async def _node(self, _: web.Request) -> web.Response:
        return reply(self.now())

    def now(self) -> NodeNow:
        """The node as it is."""
        latest, fenced, now = self._latest, self._warden.fences.gpus, self._loop.now()
        gpus = latest.seen.gpus if latest.seen else ()
        return NodeNow(
            node=self._loop.node,
            facts=self._loop.facts(),
            level=self._warden.level,
            paused=self._warden.is_paused,
            gpus=tuple(
                GpuNow(gpu=g.uuid, index=g.index, sample=latest.fresh(g.uuid, now), fenced=g.uuid in fenced)
                for g in gpus
            ),
            replicas=self._loop.replicas(),
            fences=tuple(sorted(fenced)),
            sources=tuple(latest.sources.values()),
            spool=SpoolNow(
                items=self._spool.depth,
                bytes=self._spool.size_bytes,
                dropped=self._spool.dropped,
                last=self._spool.last,
            ),
            controller=ControllerNow(
                url=self._controller,
                up=self._uplink.up,
                last_success=self._uplink.last_success,
                generation=self._uplink.generation,
            ),
            events_since=latest.events_since,
        )

    async def _events(self, _: web.Request) -> web.Response:
        """The events of late, oldest first, as JSON Lines."""
        lines = [msgspec.json.encode(event) + b"\n" for event in self._latest.events.values()]
        return web.Response(body=b"".join(lines), content_type="application/x-ndjson")

    async def _recording(self, request: web.Request) -> web.StreamResponse:
        """The raw observations of late, as a recording for ``corral replay``."""
        answer = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await answer.prepare(request)
        for lines in self._ring.lines():
            await answer.write(lines)
        await answer.write_eof()
        return answer

    async def _drills(self, request: web.Request) -> web.Response:
        records = self._hardware.drill(await request.read())
        return reply({"kernel_records": records}, 202)

    def _refresh(self, export: Export) -> None:
        """Set the gauges that are only read when somebody scrapes."""
        export.set("corral_agent_gpus", len(self._latest.seen.gpus) if self._latest.seen else 0)
        export.set("corral_agent_spool_items", self._spool.depth)
        export.set("corral_agent_spool_bytes", self._spool.size_bytes)
        export.dropped(self._spool.dropped)
        export.set("corral_agent_uplink_up", self._uplink.up)
        export.set("corral_agent_uplink_last_success_timestamp_seconds", self._uplink.last_success or 0.0)
        export.set("corral_agent_desired_generation", self._uplink.generation)
        export.set("corral_agent_paused", self._warden.is_paused)
        export.refresh()
        export.phases([status.phase for status in self._loop.replicas()])
        facts = self._loop.facts()
        if facts is not None:
            export.node(facts)


def _everything(export: Export) -> Middleware:
    """``/metrics?full=1``: every reading, link and MIG instance."""

    @web.middleware
    async def at_scrape(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path != "/metrics" or "full" not in request.query:
            return await handler(request)
        body, content_type = export.exposition.render(wide=True)
        return web.Response(body=body, headers={"Content-Type": content_type})

    return at_scrape


def _refreshed(refresh: Callable[[], None]) -> Middleware:
    @web.middleware
    async def before_scrape(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path == "/metrics":
            refresh()
        return await handler(request)

    return before_scrape
