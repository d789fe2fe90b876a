"""What agents, gateways and Prometheus talk to."""

import asyncio
import time
from collections.abc import Collection
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from controller.api.forms import DesiredQuery, ReachAck, ReachBody, TargetGroup
from controller.api.route import Call, Route, Run
from controller.core.fleet.stimuli import Reached
from controller.deciding import ingest
from controller.deciding.conductor import Conductor, Submission
from controller.deciding.dispatch import POLL_S, Dispatch
from controller.door.access import Caller
from controller.door.limits import ANSWER_S
from controller.several.reports import Reports
from controller.telling.export import Export
from vocab.errors import InputError, Unreachable
from vocab.messages import Batch, BatchAck, Desired
from vocab.roles import NODES, REACHES, Role
from vocab.states import NodeState
from wire.server import MAX_BODY_BYTES, decode

BATCH = "/api/v1/agent/batch"
STORE_S = 8.0  # below the 10 s after which an agent's request gives up: it should hear why


class Agents:
    """Batches in, desired state out, and the addresses of what can be scraped."""

    def __init__(
        self, conductor: Conductor, dispatch: Dispatch, reports: Reports, export: Export, gateways: tuple[str, ...]
    ) -> None:
        self._conductor = conductor
        self._dispatch = dispatch
        self._reports = reports
        self._export = export
        self._gateways = gateways
        self._begun: dict[str, tuple[bytes, Submission]] = {}  # by node: a heartbeat that is heard, and what it stirred

    def routes(self) -> list[Route]:
        """The rows."""
        return [
            Route(
                method="POST",
                path=BATCH,
                name="agent_batch",
                summary="A report of a node; answered once it is on disk",
                run=self.batch,
                body=Batch,
                answer=BatchAck,
                raw=True,
                roles=NODES,
                most_bytes=MAX_BODY_BYTES,
            ),
            Route(
                method="GET",
                path="/api/v1/agent/desired",
                name="agent_desired",
                summary="What a node should run, hold and do; waits for a generation above the given one",
                run=self.desired,
                query=DesiredQuery,
                answer=Desired,
                errors=(404,),
                roles=NODES,
                answer_s=POLL_S + ANSWER_S,
            ),
            Route(
                method="POST",
                path="/api/v1/gateway/reach",
                name="gateway_reach",
                summary="Which nodes a gateway reaches: a silent one is lost only if two others cannot reach it",
                run=self.reach,
                body=ReachBody,
                answer=ReachAck,
                roles=REACHES,
            ),
            _targets("agents", self.agents),
            _targets("engines", self.engines),
            _targets("gateways", self.gateways),
        ]

    async def batch(self, call: Call) -> BatchAck:
        """Store a report."""
        began = time.perf_counter()
        outcome = "refused"
        try:
            batch = ingest.checked(decode(call.body, Batch))
            call.caller.must_be(batch.node)
            if (left := self._hear(batch, call.body)) is not None:
                async with asyncio.timeout(STORE_S):
                    await self._conductor.submit(left)
            outcome = "stored"
        except InputError:
            outcome = "malformed"
            raise
        except TimeoutError as error:
            raise Unreachable("the store did not answer in time; send the batch again") from error
        finally:
            self._export.batch(outcome, time.perf_counter() - began)
        return self._ack(batch)

    def _hear(self, batch: Batch, raw: bytes) -> Submission | None:
        begun, left = self._begun.pop(batch.node, (b"", None))
        if begun == raw:
            return left
        self._reports.take(batch)
        return self._conductor.hear(batch)

    def heartbeat(self, raw: bytes) -> Batch | None:
        """The report, if ``beat`` can take it. Raises InputError."""
        try:
            batch = ingest.checked(ingest.decode_batch.decode(raw))
        except msgspec.DecodeError:
            return None
        return batch if self._conductor.is_beat(batch) else None

    def beat(self, batch: Batch, raw: bytes) -> BatchAck | None:
        """Hear a heartbeat, and answer it at once; None if it has stirred something: ``batch`` then waits for that."""
        began = time.perf_counter()
        self._reports.take(batch)
        if (left := self._conductor.beat(batch)) is not None:
            self._begun[batch.node] = raw, left
            return None
        self._export.batch("stored", time.perf_counter() - began)
        return self._ack(batch)

    def _ack(self, batch: Batch) -> BatchAck:
        mind = self._conductor.mind
        return BatchAck(
            position=mind.repeats.acknowledged(batch.node, batch.session),
            generation=self._dispatch.generation(batch.node),
            want_facts=mind.wants_facts(msgspec.structs.replace(batch, facts=None)),
            heartbeat_s=self._reports.heartbeat_s,
        )

    async def desired(self, call: Call) -> Desired:
        """Answer with the node's desired state once it is newer, or after the wait."""
        query: DesiredQuery = call.query
        call.caller.must_be(query.node)
        desired = await self._dispatch.poll(query.node, query.generation, query.wait_s)
        if desired is None:
            raise web.HTTPNotFound(reason="nothing is known for this node yet: it must report its facts and replicas")
        return desired

    async def reach(self, call: Call) -> ReachAck:
        """Take down what a gateway says of nodes that are silent; what it says of others decides nothing."""
        body: ReachBody = call.body
        call.caller.must_be(body.by)
        nodes = (await self._conductor.view()).nodes
        by = _witness(call.caller, body.by, {each.node for each in nodes})
        silent = [each.node for each in nodes if each.state != NodeState.LIVE and each.node in body.nodes]
        seen = [Reached(of=node, by=by, ok=body.nodes[node]) for node in silent]
        if seen:
            await self._conductor.submit(Submission(stimuli=seen))
        return ReachAck(noted=silent)

    async def agents(self, _: Call) -> list[TargetGroup]:
        """The agents' /metrics."""
        nodes = (await self._conductor.view()).nodes
        return [_group(node.address, {"node": node.node}) for node in nodes if node.address]

    async def engines(self, _: Call) -> list[TargetGroup]:
        """The replicas' /metrics."""
        replicas = (await self._conductor.view()).replicas
        return [
            _group(each.url, {"node": each.node, "replica": each.replica, "deployment": each.deployment})
            for each in replicas
            if each.url
        ]

    async def gateways(self, _: Call) -> list[TargetGroup]:
        """The gateways' /metrics, as configured."""
        return [_group(each if "://" in each else f"http://{each}", {}) for each in self._gateways]


def _witness(caller: Caller, by: str, nodes: Collection[str]) -> str:
    """Who has seen it. On a GPU node it is that node, which is no witness of itself; a token is one witness at most."""
    if caller.role is Role.GATEWAY and caller.node is None:
        return f"gateway:{caller.name}"
    return by if by in nodes else f"gateway:{by}"


def _group(url: str, labels: dict[str, str]) -> TargetGroup:
    parts = urlsplit(url)
    return TargetGroup(targets=[parts.netloc], labels={"__scheme__": parts.scheme or "http", **labels})


def _targets(name: str, run: Run) -> Route:
    return Route(
        method="GET",
        path=f"/sd/{name}",
        name=f"sd_{name}",
        summary=f"Prometheus service discovery: {name}",
        run=run,
        answer=list[TargetGroup],
    )
