"""What can be looked at. Lists of standing things come from the Core's view, histories from the store.

All lists come in pages: the latest of a history first to be asked for, newest at the end of a page.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from aiohttp import web

from controller.api.forms import (
    ActionQuery,
    AuditQuery,
    EventQuery,
    Fleet,
    GpuQuery,
    HoldQuery,
    IncidentQuery,
    NodeQuery,
    ReplicaQuery,
    Story,
    WatchQuery,
)
from controller.api.paging import Paged, PageQuery, before, behind, in_order, page
from controller.api.policy import PolicyInForce, in_force
from controller.api.route import Call, Route, Run, not_found
from controller.core.fleet.kinds import STARTED
from controller.core.fleet.views import DeploymentView, GpuView, NodeView, ReplicaView, View
from controller.core.policy import pause
from controller.deciding.conductor import Conductor
from controller.store import pages, read
from controller.store.change import Change
from controller.store.pages import EventFilter
from controller.store.records import Audit
from controller.store.store import Store
from controller.telling.watch import Watch
from vocab.catalogue import codes
from vocab.events import Event
from vocab.lines import ActionLine, AnyLine, HoldLine, IncidentLine, Subject
from vocab.roles import ROUTES, Role
from vocab.runbooks import runbook
from vocab.states import REPAIRS, ActionState

T = TypeVar("T")

_FINISHED = {"open": False, "finished": True, None: None}


def _lines(changes: Sequence[Change]) -> list[AnyLine]:
    return [change.line for change in changes]


class Reads:
    """The GET side of the interface."""

    def __init__(self, conductor: Conductor, store: Store, watch: Watch) -> None:
        self._conductor = conductor
        self._store = store
        self._watch = watch

    def routes(self) -> list[Route]:
        """The rows."""
        return [
            _get("fleet", "Everything at one moment", self.fleet, Fleet),
            _get("nodes", "All nodes with their GPUs", self.nodes, list[NodeView], query=NodeQuery),
            _get("gpus", "All GPUs", self.gpus, list[GpuView], query=GpuQuery),
            _get("gpus/{uuid}", "One GPU", self.gpu, GpuView, errors=(404,)),
            _get(
                "gpus/{uuid}/explain",
                "A GPU's story: all lines about it and its incidents, in causal order",
                self.explain,
                list[AnyLine],
                errors=(404,),
            ),
            _get("events", "The latest events, the newest last", self.events, list[Event], query=EventQuery),
            _get(
                "incidents",
                "The last line of each incident, the latest last",
                self.incidents,
                list[IncidentLine],
                query=IncidentQuery,
            ),
            _get("incidents/{id}", "One incident and its lines", self.incident, Story, errors=(404,)),
            _get("holds", "Standing holds", self.holds, list[HoldLine], query=HoldQuery),
            _get("holds/{id}", "One standing hold", self.hold, HoldLine, errors=(404,)),
            _get(
                "actions",
                "The last line of each action, the latest last",
                self.actions,
                list[ActionLine],
                query=ActionQuery,
            ),
            _get("actions/{id}", "The last line of one action", self.action, ActionLine, errors=(404,)),
            _get(
                "replicas",
                "Replicas that run or should",
                self.replicas,
                list[ReplicaView],
                query=ReplicaQuery,
                roles=ROUTES,
            ),
            _get(
                "deployments", "Deployments, ready and wanted", self.deployments, list[DeploymentView], query=PageQuery
            ),
            _get("policy", "The policy in force: levels, limits, rules and what differs", self.policy, PolicyInForce),
            _get("audit", "What people ordered, the latest last", self.audit, list[Audit], query=AuditQuery),
            _get(
                "watch", "Server-sent events: every new line; id is its seq", self.watch, query=WatchQuery, stream=True
            ),
        ]

    async def fleet(self, _: Call) -> Fleet:
        """Everything at one moment."""
        view = await self._conductor.view()
        return Fleet(
            nodes=view.nodes,
            deployments=view.deployments,
            replicas=view.replicas,
            incidents_open=view.incidents,
            incidents_began=view.began,
            halted=view.halted,
            actions_waiting=tuple(action for action in view.actions if action.state is ActionState.WAITING),
            actions_paused=tuple(filter(pause.is_held_back, view.actions)),
            repairs_running=tuple(each for each in view.actions if each.of in REPAIRS and each.state in STARTED),
            counts=view.counts,
            paused=view.paused,
            pauses=view.pauses,
            settled=view.settled,
            seq=self._conductor.seq,
            managers=view.managers,
            controller=self._conductor.role,
        )

    async def nodes(self, call: Call) -> Paged:
        """Nodes that match."""
        query: NodeQuery = call.query
        rest = _behind((await self._conductor.view()).nodes, behind(query), _named)
        return in_order((node for node in rest if query.state in {None, node.state}), _named, query)

    async def gpus(self, call: Call) -> Paged:
        """GPUs that match."""
        query: GpuQuery = call.query
        found = _gpus((await self._conductor.view()).nodes, query)
        return in_order(found, lambda gpu: f"{gpu.node}/{gpu.uuid}", query)

    async def gpu(self, call: Call) -> GpuView:
        """One GPU."""
        uuid = call.part("uuid")
        for node in (await self._conductor.view()).nodes:
            for gpu in node.gpus:
                if gpu.uuid == uuid:
                    return gpu
        raise not_found("GPU", uuid, "/api/v1/gpus")

    async def explain(self, call: Call) -> list[AnyLine]:
        """A GPU's story; also of one that is gone, as long as its history is kept."""
        uuid = call.part("uuid")
        async with self._store.reading() as connection:
            lines = _lines(await read.gpu_lines(connection, uuid))
        if not lines:
            await self.gpu(call)
        return lines

    async def events(self, call: Call) -> Paged:
        """The latest events that match."""
        query: EventQuery = call.query
        wanted = EventFilter(
            gpu=query.gpu,
            node=query.node,
            code=query.code,
            severity=query.severity,
            since=query.since,
            until=query.until,
        )
        async with self._store.reading() as connection:
            return _history(await pages.events_before(connection, wanted, before(query), query.most))

    async def incidents(self, call: Call) -> Paged:
        """The last line of each incident that matches."""
        query: IncidentQuery = call.query

        def matches(line: IncidentLine) -> bool:
            bad_enough = query.severity is None or line.severity.rank >= query.severity.rank
            return bad_enough and _has(line, code=query.code) and _has(line.subject, gpu=query.gpu, node=query.node)

        return await self._latest("incident", query, _FINISHED[query.state], matches)

    async def actions(self, call: Call) -> Paged:
        """The last line of each action that matches."""
        query: ActionQuery = call.query

        def matches(line: ActionLine) -> bool:
            about = _has(line.subject, gpu=query.gpu, node=query.node, replica=query.replica)
            return about and _has(line, of=query.of, incident=query.incident)

        return await self._latest("action", query, _FINISHED[query.state], matches)

    async def _latest(
        self, kind: str, query: PageQuery, finished: bool | None, matches: Callable[[Any], bool]
    ) -> Paged:
        async with self._store.reading() as connection:
            return _history(
                await pages.lines_before(
                    connection, kind, before(query), query.most, finished=finished, matches=matches
                )
            )

    async def action(self, call: Call) -> ActionLine:
        """One action."""
        name = call.part("id")
        async with self._store.reading() as connection:
            line = await read.standing_line(connection, "action", name)
        if not isinstance(line, ActionLine):
            raise not_found("action", name, "/api/v1/actions")
        return line

    async def incident(self, call: Call) -> Story:
        """One incident's story."""
        name = call.part("id")
        async with self._store.reading() as connection:
            line = await read.standing_line(connection, "incident", name)
            if not isinstance(line, IncidentLine):
                raise not_found("incident", name, "/api/v1/incidents")
            lines = _lines(await read.incident_lines(connection, name))
        view = await self._conductor.view()
        return Story(
            incident=line,
            lines=lines,
            place=_place(view, line.subject),
            halted=view.halted.get(line.id),
            runbook=f"/runbooks/{runbook(line.code)}",
        )

    async def holds(self, call: Call) -> Paged:
        """Standing holds that match."""
        query: HoldQuery = call.query
        found = [
            hold
            for hold in (await self._conductor.view()).holds
            if _has(hold, owner=query.owner) and _has(hold.subject, gpu=query.gpu, node=query.node)
        ]
        return page(found, lambda hold: hold.id, query)

    async def hold(self, call: Call) -> HoldLine:
        """One hold, as long as it stands."""
        name = call.part("id")
        for hold in (await self._conductor.view()).holds:
            if hold.id == name:
                return hold
        raise not_found("standing hold", name, "/api/v1/holds")

    async def replicas(self, call: Call) -> Paged:
        """Replicas, for gateways."""
        query: ReplicaQuery = call.query
        wanted = {"deployment": query.deployment, "node": query.node, "state": query.state}
        rest = _behind((await self._conductor.view()).replicas, behind(query), lambda each: each.replica)
        return in_order((each for each in rest if _has(each, **wanted)), lambda each: each.replica, query)

    async def deployments(self, call: Call) -> Paged:
        """Deployments."""
        return page((await self._conductor.view()).deployments, lambda each: each.name, call.query)

    async def policy(self, _: Call) -> PolicyInForce:
        """The policy in force."""
        view = await self._conductor.view()
        return in_force(self._conductor.mind, view, codes.ROWS)

    async def audit(self, call: Call) -> Paged:
        """What people ordered."""
        query: AuditQuery = call.query
        async with self._store.reading() as connection:
            return _history(await pages.audits_before(connection, before(query), query.most, act=query.act))

    async def watch(self, call: Call) -> web.StreamResponse:
        """The stream of lines."""
        return await self._watch.serve(call.request, self._store, self._conductor.seq)


def _named(node: NodeView) -> str:
    return node.node


def _place(view: View, subject: Subject) -> str:
    """What a line is about: a GPU as NODE/INDEX where it is known, anything else by its kind and name."""
    for node in view.nodes if subject.gpu is not None else ():
        for gpu in node.gpus:
            if gpu.uuid == subject.gpu:
                return f"{node.node}/{gpu.index}"
    named = ((kind, getattr(subject, kind)) for kind in subject.__struct_fields__)
    return next((f"{kind} {name}" for kind, name in named if name is not None), "fleet")


def _behind(items: Sequence[T], after: str | None, key: Callable[[T], str]) -> Iterator[T]:
    """Those of a view, which has them in the order of ``key``, that come after a name."""
    start = 0 if after is None else bisect_right(items, after, key=key)
    return islice(items, start, None)


def _gpus(nodes: Sequence[NodeView], query: GpuQuery) -> Iterator[GpuView]:
    """The GPUs that match: by node, and in pages by UUID from behind the cursor on."""
    paged, after = query.cursor is not None or query.limit is not None, behind(query)
    name, _, last = (after or "").partition("/")
    first = bisect_left(nodes, max(name, query.node or ""), key=_named)
    for node in islice(nodes, first, None):
        if query.node is not None and node.node != query.node:
            return
        for gpu in sorted(node.gpus, key=lambda each: each.uuid) if paged else node.gpus:
            if (node.node, gpu.uuid) > (name, last) and query.state in {None, gpu.state}:
                yield gpu


def _has(thing: object, **wanted: object) -> bool:
    """Whether it has these values; None is any."""
    return all(value is None or getattr(thing, name) == value for name, value in wanted.items())


def _history(found: tuple[Sequence[Any], int | None]) -> Paged:
    items, place = found
    return Paged(items, None if place is None else str(place))


def _get(
    path: str,
    summary: str,
    run: Run,
    answer: Any = None,
    *,
    query: Any = None,
    stream: bool = False,
    errors: tuple[int, ...] = (),
    roles: frozenset[Role] | None = None,
) -> Route:
    return Route(
        method="GET",
        path=f"/api/v1/{path}",
        name=path.replace("/{uuid}", "_one").replace("/{id}", "_one").replace("/", "_"),
        summary=summary,
        run=run,
        answer=answer,
        query=query,
        stream=stream,
        errors=(*errors, 503),
        roles=roles,
        paged=query is not None and issubclass(query, PageQuery),
    )
