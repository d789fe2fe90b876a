"""What can be looked at. Lists of standing things come from the Core's view, histories from the store."""

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from controller.api.forms import EventQuery, Fleet, LimitQuery, StateQuery, Story, WatchQuery
from controller.api.policy import PolicyInForce, in_force
from controller.api.route import Call, Route, Run, not_found
from controller.conductor import Conductor
from controller.core.views import DeploymentView, GpuView, NodeView, ReplicaView
from controller.store import read
from controller.store.change import Change
from controller.store.read import EventFilter
from controller.store.records import Audit
from controller.store.store import Store
from controller.watch import Watch
from vocab.catalogue import codes
from vocab.events import Event
from vocab.lines import ActionLine, AnyLine, HoldLine, IncidentLine
from vocab.states import ActionState

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
            _get("nodes", "All nodes with their GPUs", self.nodes, list[NodeView]),
            _get("gpus", "All GPUs", self.gpus, list[GpuView]),
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
                query=StateQuery,
            ),
            _get("incidents/{id}", "One incident and its lines", self.incident, Story, errors=(404,)),
            _get("holds", "Standing holds", self.holds, list[HoldLine]),
            _get(
                "actions",
                "The last line of each action, the latest last",
                self.actions,
                list[ActionLine],
                query=StateQuery,
            ),
            _get("replicas", "Replicas that run or should", self.replicas, list[ReplicaView]),
            _get("deployments", "Deployments, ready and wanted", self.deployments, list[DeploymentView]),
            _get("policy", "The policy in force: levels, limits, rules and what differs", self.policy, PolicyInForce),
            _get("audit", "What people ordered, the latest last", self.audit, list[Audit], query=LimitQuery),
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
            halted=view.halted,
            actions_waiting=tuple(action for action in view.actions if action.state is ActionState.WAITING),
            counts=view.counts,
            paused=view.paused,
            pauses=view.pauses,
            settled=view.settled,
            seq=self._conductor.seq,
        )

    async def nodes(self, _: Call) -> Sequence[NodeView]:
        """All nodes."""
        return (await self._conductor.view()).nodes

    async def gpus(self, _: Call) -> list[GpuView]:
        """All GPUs."""
        return [gpu for node in (await self._conductor.view()).nodes for gpu in node.gpus]

    async def gpu(self, call: Call) -> GpuView:
        """One GPU."""
        uuid = call.part("uuid")
        for gpu in await self.gpus(call):
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

    async def events(self, call: Call) -> list[Event]:
        """The latest events that match."""
        query: EventQuery = call.query
        wanted = EventFilter(
            gpu=query.gpu, node=query.node, code=query.code, severity=query.severity, limit=query.limit
        )
        async with self._store.reading() as connection:
            return await read.latest_events(connection, wanted)

    async def incidents(self, call: Call) -> list[AnyLine]:
        """The last line of each incident."""
        return await self._latest("incident", call.query)

    async def actions(self, call: Call) -> list[AnyLine]:
        """The last line of each action."""
        return await self._latest("action", call.query)

    async def _latest(self, kind: str, query: StateQuery) -> list[AnyLine]:
        async with self._store.reading() as connection:
            return _lines(await read.latest(connection, kind, finished=_FINISHED[query.state], limit=query.limit))

    async def incident(self, call: Call) -> Story:
        """One incident's story."""
        name = call.part("id")
        async with self._store.reading() as connection:
            line = await read.standing_line(connection, "incident", name)
            if not isinstance(line, IncidentLine):
                raise not_found("incident", name, "/api/v1/incidents")
            return Story(incident=line, lines=_lines(await read.incident_lines(connection, name)))

    async def holds(self, _: Call) -> Sequence[HoldLine]:
        """Standing holds."""
        return (await self._conductor.view()).holds

    async def replicas(self, _: Call) -> Sequence[ReplicaView]:
        """Replicas, for gateways."""
        return (await self._conductor.view()).replicas

    async def deployments(self, _: Call) -> Sequence[DeploymentView]:
        """Deployments."""
        return (await self._conductor.view()).deployments

    async def policy(self, _: Call) -> PolicyInForce:
        """The policy in force."""
        mind = self._conductor.mind
        return in_force(mind.settings, mind.shape, await self._conductor.view(), codes.ROWS)

    async def audit(self, call: Call) -> list[Audit]:
        """What people ordered."""
        async with self._store.reading() as connection:
            return await read.audits(connection, limit=call.query.limit)

    async def watch(self, call: Call) -> web.StreamResponse:
        """The stream of lines."""
        return await self._watch.serve(call.request, self._store, self._conductor.seq)


def _get(
    path: str,
    summary: str,
    run: Run,
    answer: Any = None,
    *,
    query: Any = None,
    stream: bool = False,
    errors: tuple[int, ...] = (),
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
    )
