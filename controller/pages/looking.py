"""The pages that show: each gathers its facts by the functions that answer the interface, and renders them."""

from typing import Any

import msgspec
from aiohttp import web
from markupsafe import Markup

from controller.api.forms import IncidentQuery
from controller.api.reads import Reads
from controller.api.route import Call
from controller.core.fleet.views import GpuView, NodeView, View
from controller.deciding.conductor import Conductor
from controller.pages import words
from controller.pages.charts import charts
from controller.pages.fleet_map import Filter, Tiles, choices, find
from controller.pages.frame import HEADERS, Frame
from controller.pages.queries import asked, older
from controller.pages.recent import HOUR_S, Place, Recent
from controller.store import cards
from controller.store.card_history import history
from controller.store.store import Store
from vocab.clock import Clock
from vocab.errors import Unreachable
from vocab.lines import ActionLine, AnyLine
from vocab.states import REPAIRS, TERMINAL_ACTIONS, ActionState

MOST_LINES = 300  # of a timeline: what is older is a link away


class OnlyQuery(Filter, frozen=True, kw_only=True):
    """``only``: of what matches, these nodes, for a page that is open."""

    only: str = ""


class StoryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """``all``: also what is older."""

    all: bool = False


class Looking:
    """The pages of the fleet, its GPUs, incidents and deployments."""

    def __init__(
        self,
        frame: Frame,
        conductor: Conductor,
        store: Store,
        reads: Reads,
        recent: Recent,
        clock: Clock,
        gateways: tuple[str, ...],
    ) -> None:
        self._frame = frame
        self._conductor = conductor
        self._store = store
        self._reads = reads
        self._recent = recent
        self._clock = clock
        self._gateways = gateways
        self._tiles = Tiles()

    # -- the fleet --------------------------------------------------------------------------------------

    async def fleet(self, request: web.Request) -> web.StreamResponse:
        """The map, and beside it what needs people."""
        view, wanted = await self._conductor.view(), asked(request, OnlyQuery)
        pools = self._conductor.mind.shape.pools
        found = find(view, wanted, pools)
        if wanted.only:
            return self._some(view, wanted, frozenset(wanted.only.split(",")))
        return self._frame.render(
            request, "fleet.html", view, wanted=wanted, found=found, choices=choices(view, pools), tile=self._tiles.of,
            role=self._conductor.role,
        )  # fmt: skip

    def _some(self, view: View, wanted: Filter, only: frozenset[str]) -> web.Response:
        """The tiles of a few nodes, for a map that is open."""
        found = find(view, msgspec.structs.replace(wanted, show="tiles"), self._conductor.mind.shape.pools)
        shown = [each for section in found.sections for each in section.nodes if each.node.node in only]
        body = Markup("<ul>") + Markup("").join(map(self._tiles.of, shown)) + Markup("</ul>")
        return web.Response(text=body, content_type="text/html", headers=HEADERS)

    async def gpu(self, request: web.Request) -> web.StreamResponse:
        """One GPU: why it is in its state, its story, its hour, and what its board has seen elsewhere."""
        uuid, query = request.match_info["uuid"], asked(request, StoryQuery)
        view = await self._conductor.view()
        lines = words.causal(await self._reads.explain(Call(request, None, None)))
        node, gpu = _find(view, uuid)
        async with self._store.reading() as connection:
            named = await cards.named(connection, uuid) if uuid.isprintable() else []
            board = await history(connection, named) if named else None
        return self._frame.render(
            request, "gpu.html", view, uuid=uuid, node=node, gpu=gpu, lines=_latest(lines, query), total=len(lines),
            board=board, readings=_readings(gpu), waits=_waiting(lines, view), approvable=REPAIRS,
        )  # fmt: skip

    async def charts(self, request: web.Request) -> web.StreamResponse:
        """Its last hour, as its agent recorded it; asked for by itself, since an agent may be slow or gone."""
        view = await self._conductor.view()
        node, gpu = _find(view, request.match_info["uuid"])
        if node is None or gpu is None:
            raise web.HTTPNotFound(reason="this GPU is no part of the fleet")
        now, why, drawn = self._clock.now(), "", []
        try:
            points = await self._recent.of(node.address, Place(gpu.uuid, gpu.index, gpu.pci))
            drawn = charts(points, now - HOUR_S, now)
        except Unreachable as error:
            why = f"The agent of {node.node} did not give its recording: {error}"
        template = "charts_part.html" if "bare" in request.query else "charts.html"
        return self._frame.render(request, template, view, node=node, gpu=gpu, charts=drawn, why=why)

    # -- incidents and deployments ----------------------------------------------------------------------

    async def incidents(self, request: web.Request) -> web.StreamResponse:
        """Incidents, the latest first."""
        view, query = await self._conductor.view(), asked(request, IncidentQuery)
        found = await self._reads.incidents(Call(request, query, None))
        return self._frame.render(
            request, "incidents.html", view, query=query, rows=list(reversed(found.items)),
            older=older(request, query, found), halted=view.halted,
        )  # fmt: skip

    async def incident(self, request: web.Request) -> web.StreamResponse:
        """One incident."""
        view, query = await self._conductor.view(), asked(request, StoryQuery)
        story = await self._reads.incident(Call(request, None, None))
        lines = words.causal(story.lines)
        return self._frame.render(
            request, "incident.html", view, incident=story.incident, lines=_latest(lines, query), total=len(lines),
            actions=_actions(lines), halted=view.halted.get(story.incident.id), approvable=REPAIRS,
            terminal=TERMINAL_ACTIONS, opened=min((line.at for line in lines), default=story.incident.at),
        )  # fmt: skip

    async def deployments(self, request: web.Request) -> web.StreamResponse:
        """What is served, by which replicas, and which of them gateways send requests to."""
        view = await self._conductor.view()
        of: dict[str, list[Any]] = {each.name: [] for each in view.deployments}
        for replica in view.replicas:
            of.setdefault(replica.deployment, []).append(replica)
        found = [each for each in view.replicas if each.observed]
        return self._frame.render(
            request, "deployments.html", view, of=of, found=found, gateways=self._gateways, takes=takes
        )


def takes(replica: Any) -> tuple[bool, str]:
    """Whether gateways send it requests, and why not: they believe its own /ready before this."""
    if replica.observed:
        return False, "found, not handed over"
    if not replica.url:
        return False, "has no address yet"
    if replica.admitting and replica.ready:
        return True, "yes"
    return False, words.plain(replica.state) if replica.state != "ready" else "admits nothing"


def _find(view: View, uuid: str) -> tuple[NodeView | None, GpuView | None]:
    for node in view.nodes:
        for gpu in node.gpus:
            if gpu.uuid == uuid:
                return node, gpu
    return None, None


def _latest(lines: list[AnyLine], query: StoryQuery) -> list[AnyLine]:
    return lines if query.all else lines[-MOST_LINES:]


def _readings(gpu: GpuView | None) -> dict[str, Any]:
    if gpu is None or gpu.readings is None:
        return {}
    return {name: value for name, value in msgspec.structs.asdict(gpu.readings).items() if value is not None}


def _actions(lines: list[AnyLine]) -> list[ActionLine]:
    """The last line of each action, in the order in which they began."""
    last: dict[str, ActionLine] = {}
    for line in lines:
        if isinstance(line, ActionLine):
            last[line.id] = line
    return list(last.values())


def _waiting(lines: list[AnyLine], view: View) -> list[ActionLine]:
    standing = {action.id for action in view.actions if action.state is ActionState.WAITING}
    return [action for action in _actions(lines) if action.id in standing]
