"""What a person can order. Each order goes through the Core, is audited with what came of it, and says why."""

from typing import Any

from aiohttp import web

from controller.api.forms import (
    ApprovalBody,
    CancelBody,
    DrainBody,
    HoldBody,
    LiftBody,
    Ordered,
    OrderQuery,
    PauseBody,
    ReasonBody,
    ReleaseBody,
    UndoBody,
)
from controller.api.route import Call, Route, Run, not_found
from controller.core.fleet.stimuli import Asked
from controller.core.policy.pause import MAINTENANCE
from controller.core.preview import Preview
from controller.deciding.conductor import Conductor, Submission
from controller.deciding.verdict import verdict
from controller.store.change import subject_text
from controller.store.records import Audit
from vocab.clock import Clock
from vocab.errors import InputError, Refused
from vocab.lines import HoldLine, Subject
from wire.server import reply

OURS = ("policy", "agent", "corral", MAINTENANCE)  # owners that only Corral itself may be


class Orders:
    """The POST and DELETE side of the interface."""

    def __init__(self, conductor: Conductor, clock: Clock) -> None:
        self._conductor = conductor
        self._clock = clock

    def routes(self) -> list[Route]:
        """The rows."""
        return [
            _order("POST", "holds", "Take a GPU or node out of service", self.hold, HoldBody, HoldLine | Preview, 201),
            _order("DELETE", "holds/{id}", "Lift one hold", self.lift, LiftBody, current=self.standing),
            _order("POST", "drains", "Hold, replace elsewhere and drain", self.drain, DrainBody),
            _order("POST", "releases", "Put a GPU back to service", self.release, ReleaseBody),
            _order("POST", "pause", "Stop harmful automation: all, of a pool or of a node", self.pause, PauseBody),
            _order("POST", "resume", "End a pause", self.resume, PauseBody),
            _order("POST", "discards", "Drop what waits for room, and let demoted rules act", self.discard, ReasonBody),
            _order("POST", "undo", "Take back what automation did lately, as far as it can be", self.undo, UndoBody),
            _order("POST", "cancels", "Call off an unfinished action", self.cancel, CancelBody),
            _order("POST", "approvals", "Allow an action that waits for a person", self.approve, ApprovalBody),
        ]

    async def hold(self, call: Call) -> HoldLine | web.Response:
        """Place a hold; one that stands already for the same reason is answered as it is."""
        body: HoldBody = call.body
        if body.owner in OURS:
            raise InputError(f"`owner` is {body.owner!r}: that is Corral's own; choose another")
        subject = await self._known(body.subject, ("gpu", "node"))
        ask = Asked(
            do="hold",
            by=call.actor,
            reason=body.reason,
            owner=body.owner,
            gpu=subject.gpu,
            node=subject.node,
            force=body.force,
        )
        answer = await self._order(call, ask, subject_text(subject))
        if isinstance(answer, Preview):
            return reply(answer)  # 200, and not the 201 of a hold that was placed
        standing = [*answer.lines, *(await self._conductor.view()).holds]
        for line in standing:
            if (
                isinstance(line, HoldLine)
                and (line.subject, line.owner) == (subject, body.owner)
                and line.op == "placed"
            ):
                return line
        raise Refused("the hold was not placed; /api/v1/holds shows what stands")

    async def standing(self, call: Call) -> HoldLine:
        """The hold that a path names."""
        hold = call.part("id")
        for line in (await self._conductor.view()).holds:
            if line.id == hold:
                return line
        raise not_found("standing hold", hold, "/api/v1/holds")

    async def lift(self, call: Call) -> Ordered | Preview:
        """Lift a hold."""
        hold, body = (await self.standing(call)).id, call.body
        ask = Asked(do="lift", by=call.actor, reason=body.reason, hold=hold, force=body.force)
        return await self._order(call, ask, f"hold:{hold}")

    async def drain(self, call: Call) -> Ordered | Preview:
        """Drain a GPU, node or replica."""
        body: DrainBody = call.body
        subject = await self._known(body.subject, ("gpu", "node", "replica"))
        ask = Asked(
            do="drain",
            by=call.actor,
            reason=body.reason,
            gpu=subject.gpu,
            node=subject.node,
            replica=subject.replica,
            force=body.force,
            cut_short=body.now,
        )
        return await self._order(call, ask, subject_text(subject))

    async def release(self, call: Call) -> Ordered | Preview:
        """Put a GPU back to service: its conditions and the policy's holds end; other owners' holds stay."""
        body: ReleaseBody = call.body
        subject = await self._known(body.subject, ("gpu",))
        ask = Asked(do="set_healthy", by=call.actor, reason=body.reason, gpu=subject.gpu)
        return await self._order(call, ask, subject_text(subject))

    async def pause(self, call: Call) -> Ordered | Preview:
        """Pause everything, a pool or a node."""
        return await self._pause(call, "pause")

    async def resume(self, call: Call) -> Ordered | Preview:
        """End one pause; others that stand go on standing."""
        return await self._pause(call, "resume")

    async def _pause(self, call: Call, do: str) -> Ordered | Preview:
        body: PauseBody = call.body
        if body.pool is not None and body.node is not None:
            raise InputError("name `pool` or `node`, not both; neither: everything")
        ask = Asked(do=do, by=call.actor, reason=body.reason, pool=body.pool, node=body.node)
        subject = f"pool:{body.pool}" if body.pool else f"node:{body.node}" if body.node else ""
        return await self._order(call, ask, subject)

    async def discard(self, call: Call) -> Ordered | Preview:
        """A person has looked: what waits for room needs fresh evidence, budgets count anew, demoted rules act."""
        ask = Asked(do="discard_backlog", by=call.actor, reason=call.body.reason)
        return await self._order(call, ask, "")

    async def approve(self, call: Call) -> Ordered | Preview:
        """Approve."""
        body: ApprovalBody = call.body
        if body.action not in {action.id for action in (await self._conductor.view()).actions}:
            raise not_found("unfinished action", body.action, "/api/v1/actions?state=open")
        ask = Asked(do="approve", by=call.actor, reason=body.reason, action=body.action, force=body.force)
        return await self._order(call, ask, f"action:{body.action}")

    async def cancel(self, call: Call) -> Ordered | Preview:
        """Call off."""
        body: CancelBody = call.body
        ask = Asked(do="cancel", by=call.actor, reason=body.reason, action=body.action)
        return await self._order(call, ask, f"action:{body.action}")

    async def undo(self, call: Call) -> Ordered | Preview:
        """Lift what the policy held since, call off what has not ended, and name what stays done."""
        body: UndoBody = call.body
        ask = Asked(do="undo", by=call.actor, reason=body.reason, since_s=body.since_s, rule=body.rule)
        return await self._order(call, ask, f"rule:{body.rule}" if body.rule else "")

    async def _order(self, call: Call, ask: Asked, subject: str) -> Ordered | Preview:
        if call.query.dry_run:
            return await self._conductor.preview(ask)
        audit = Audit(self._clock.now(), call.actor, ask.do, subject, ask.reason, "")
        lines = await self._conductor.submit(Submission(stimuli=(ask,), audit=audit))
        refused = verdict(lines).refused
        if refused is not None:
            raise Refused(refused)
        return Ordered(outcome=verdict(lines).text, lines=lines)

    async def _known(self, subject: Subject, kinds: tuple[str, ...]) -> Subject:
        """The subject, if it names exactly one thing of these kinds that exists."""
        given = {name: value for name in subject.__struct_fields__ if (value := getattr(subject, name)) is not None}
        if len(given) != 1 or not given.keys() <= set(kinds):
            raise InputError(f"`subject` must name exactly one of {', '.join(kinds)}")
        view = await self._conductor.view()
        (kind, name), *_ = given.items()
        known = {
            "gpu": {gpu.uuid for node in view.nodes for gpu in node.gpus},
            "node": {node.node for node in view.nodes},
            "replica": {replica.replica for replica in view.replicas},
        }
        if name not in known[kind]:
            raise not_found(kind, name, f"/api/v1/{kind}s")
        return subject


def _order(
    method: str,
    path: str,
    summary: str,
    run: Run,
    body: Any,
    answer: Any = Ordered | Preview,
    status: int = 200,
    *,
    current: Run | None = None,
) -> Route:
    verb = {"POST": "create", "DELETE": "delete"}[method]
    return Route(
        method=method,
        path=f"/api/v1/{path}",
        name=f"{verb}_{path.replace('/{id}', '')}",
        summary=summary,
        run=run,
        answer=answer,
        query=OrderQuery,
        body=body,
        status=status,
        errors=(404, 409),
        current=current,
    )
