"""What people say of incidents: that they are over, and whether Corral was right about them."""

from typing import Annotated, Literal

import msgspec

from controller.api.forms import Ordered
from controller.api.route import Call, Route, not_found
from controller.core.fleet.stimuli import Asked
from controller.deciding.conductor import Conductor, Submission
from controller.deciding.verdict import verdict
from controller.store import read
from controller.store.records import Audit
from controller.store.store import Store
from vocab.clock import Clock
from vocab.errors import Refused


class CloseBody(msgspec.Struct, frozen=True, kw_only=True):
    """Whether Corral was right about it; left out, nothing is said of that, and the incident only ends."""

    verdict: Literal["right", "wrong"] | None = None
    reason: Annotated[str, msgspec.Meta(max_length=500)] = ""


class Verdicts:
    """The routes over incidents that people end or judge."""

    def __init__(self, conductor: Conductor, store: Store, clock: Clock) -> None:
        self._conductor = conductor
        self._store = store
        self._clock = clock

    def routes(self) -> list[Route]:
        """The rows."""
        return [
            Route(
                method="POST",
                path="/api/v1/incidents/{id}/close",
                name="close_incident",
                summary="End an incident, and say whether Corral was right; of one that has ended, the verdict alone",
                run=self.close,
                body=CloseBody,
                answer=Ordered,
                errors=(403, 404, 409, 503),
            )
        ]

    async def close(self, call: Call) -> Ordered:
        """Close it."""
        body: CloseBody = call.body
        name = await self._known(call.part("id"))
        ask = Asked(do="close", by=call.actor, reason=body.reason, incident=name, verdict=body.verdict)
        act = f"close:{body.verdict}" if body.verdict else "close"
        audit = Audit(self._clock.now(), call.actor, act, f"incident:{name}", body.reason, "")
        lines = await self._conductor.submit(Submission(stimuli=(ask,), audit=audit))
        refused = verdict(lines).refused
        if refused is not None:
            raise Refused(refused)
        return Ordered(outcome=verdict(lines).text, lines=lines)

    async def _known(self, name: str) -> str:
        """The incident's name, if there is such an incident."""
        if name.isprintable():
            async with self._store.reading() as connection:
                if await read.standing_line(connection, "incident", name) is not None:
                    return name
        raise not_found("incident", name, "/api/v1/incidents")
