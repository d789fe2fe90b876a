"""Maintenance of nodes: people are at work on one until a time that they named; it ends by itself."""

from typing import Annotated

import msgspec
from aiohttp import web

from controller.api.forms import Ordered, OrderQuery, Reason, ReasonBody
from controller.api.route import Call, Route, not_found
from controller.core.fleet.stimuli import Asked
from controller.core.policy.pause import is_maintenance
from controller.core.preview import Preview
from controller.deciding.conductor import Conductor, Submission
from controller.deciding.verdict import verdict
from controller.store.records import Audit
from vocab.clock import Clock
from vocab.errors import InputError, Refused
from vocab.lines import HoldLine

MOST_S = 90 * 86_400.0  # a node that is away for longer is taken out of the fleet


class MaintainBody(msgspec.Struct, frozen=True, kw_only=True):
    """A node, why, and until when: seconds since the epoch. ``force``: also where a limit has no room for the hold."""

    node: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    until: Annotated[float, msgspec.Meta(gt=0)]
    reason: Reason
    force: bool = False


class Maintenance:
    """``/api/v1/maintenances``: POST begins or changes one, GET lists them, DELETE ends one before its time."""

    def __init__(self, conductor: Conductor, clock: Clock) -> None:
        self._conductor = conductor
        self._clock = clock

    def routes(self) -> list[Route]:
        """The rows."""
        return [
            Route(
                method="GET",
                path="/api/v1/maintenances",
                name="list_maintenances",
                summary="The holds of the maintenances under way; `until`: when each ends by itself",
                run=self.standing,
                answer=list[HoldLine],
            ),
            self._order("POST", "maintenances", "Hold, drain and leave a node alone until a time", self.begin,
                        MaintainBody),
            self._order("DELETE", "maintenances/{node}", "End the maintenance of a node now", self.end, ReasonBody),
        ]  # fmt: skip

    def _order(self, method: str, path: str, summary: str, run: object, body: object) -> Route:
        verb = {"POST": "create", "DELETE": "delete"}[method]
        return Route(method=method, path=f"/api/v1/{path}", name=f"{verb}_maintenance", summary=summary,
                     run=run, answer=Ordered | Preview, query=OrderQuery, body=body, errors=(404, 409))  # type: ignore[arg-type]  # fmt: skip

    async def standing(self, _: Call) -> list[HoldLine]:
        """All of them."""
        return list(filter(is_maintenance, (await self._conductor.view()).holds))

    async def begin(self, call: Call) -> Ordered | Preview | web.Response:
        """Begin one, or give one another end."""
        body: MaintainBody = call.body
        if not 0 < body.until - self._clock.now() <= MOST_S:
            raise InputError(f"`until` must be a time that is to come, within {MOST_S / 86_400:.0f} days")
        if body.node not in {node.node for node in (await self._conductor.view()).nodes}:
            raise not_found("node", body.node, "/api/v1/nodes")
        ask = Asked(
            do="maintain", by=call.actor, reason=body.reason, node=body.node, until=body.until, force=body.force
        )
        return await self._submit(call, ask)

    async def end(self, call: Call) -> Ordered | Preview:
        """End one."""
        node = call.part("node")
        if node not in {hold.subject.node for hold in await self.standing(call)}:
            raise not_found("maintenance of", node, "/api/v1/maintenances")
        return await self._submit(call, Asked(do="maintained", by=call.actor, reason=call.body.reason, node=node))

    async def _submit(self, call: Call, ask: Asked) -> Ordered | Preview:
        if call.query.dry_run:
            return await self._conductor.preview(ask)
        audit = Audit(self._clock.now(), call.actor, ask.do, f"node:{ask.node}", ask.reason, "")
        lines = await self._conductor.submit(Submission(stimuli=(ask,), audit=audit))
        told = verdict(lines)
        if told.refused is not None:
            raise Refused(told.refused)
        return Ordered(outcome=told.text, lines=lines)
