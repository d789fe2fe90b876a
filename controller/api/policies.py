"""Policies adopted and gone back to, and what another one would have decided.

Each adoption is audited and says why. It changes what automation may do everywhere, so it is for admins: an operator
compares, and orders within what was adopted.
"""

from contextlib import aclosing, suppress
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec.structs import replace

from controller.api.forms import Reason
from controller.api.paging import Paged, PageQuery, before
from controller.api.policy import AdoptionView, adoption_view
from controller.api.route import Call, Route, not_found
from controller.config import Config
from controller.core.decided import Count
from controller.core.fleet.adoption import Adoption
from controller.core.fleet.stimuli import Adopted
from controller.core.policy.difference import Difference, differences
from controller.deciding import rulebook
from controller.deciding.conductor import Conductor, Submission
from controller.rehearsing.rehearsing import Rehearsing
from controller.rehearsing.told import Brief, Decided, Failed, Progress
from controller.store import policies
from controller.store.past import Span
from controller.store.records import Audit
from controller.store.store import Store
from vocab.catalogue import codes
from vocab.clock import Clock
from vocab.errors import ConfigError, InputError, Refused
from vocab.roles import ADMINS, ORDERS

DAYS = 30.0  # as long as history is kept
LINES = "application/x-ndjson"
Content = Annotated[str, msgspec.Meta(max_length=200_000)]  # a rule for each code of the catalogue is a tenth of it
Number = Annotated[int, msgspec.Meta(ge=1, le=2**53)]


class AdoptBody(msgspec.Struct, frozen=True, kw_only=True):
    """A policy file to be in force from now on. ``content`` left out: the one in force, with the rules of today."""

    reason: Reason
    content: Content | None = None


class RevertBody(msgspec.Struct, frozen=True, kw_only=True):
    """The adoption to go back to; left out: the one before the last."""

    reason: Reason
    number: Number | None = None


class DiffBody(msgspec.Struct, frozen=True, kw_only=True):
    """A policy file to compare with what is in force; left out: the one in force, with the rules of today."""

    content: Content | None = None


class PolicyDiff(msgspec.Struct, frozen=True, kw_only=True, tag_field="told", tag="diff"):
    """What differs, and what both decide over the last 30 days of this fleet: the last line of the answer.

    ``events`` were played, the first of them at ``first`` (None: there is none), on nodes that were taken to be idle
    and at level repair, where each repair works.
    """

    before: str
    after: str
    differences: tuple[Difference, ...]
    since: float
    events: int
    first: float | None
    decided: tuple[Count, ...]


class AdoptionFile(AdoptionView, frozen=True, kw_only=True):
    """An adoption with the file that was adopted, empty for the built-in policy alone."""

    content: str


class Policies:
    """The routes over the adopted policies."""

    def __init__(self, conductor: Conductor, store: Store, clock: Clock, rehearsing: Rehearsing) -> None:
        self._conductor = conductor
        self._store = store
        self._clock = clock
        self._rehearsing = rehearsing

    def routes(self) -> list[Route]:
        """The rows."""
        return [
            Route(
                method="GET",
                path="/api/v1/policy/adoptions",
                name="policy_adoptions",
                summary="The policies that were adopted, the last one first",
                run=self.history,
                answer=list[AdoptionView],
                query=PageQuery,
                paged=True,
                errors=(503,),
            ),
            Route(
                method="GET",
                path="/api/v1/policy/adoptions/{number}",
                name="policy_adoption",
                summary="One of them, with its file",
                run=self.one,
                answer=AdoptionFile,
                errors=(404, 503),
            ),
            Route(
                method="POST",
                path="/api/v1/policy/adoptions",
                name="adopt_policy",
                summary="Put a policy in force",
                run=self.adopt,
                body=AdoptBody,
                answer=AdoptionView,
                status=201,
                errors=(403, 409, 503),
                roles=ADMINS,
            ),
            Route(
                method="POST",
                path="/api/v1/policy/reverts",
                name="revert_policy",
                summary="Go back to an earlier adoption, rules that have changed since in shadow",
                run=self.revert,
                body=RevertBody,
                answer=AdoptionView,
                status=201,
                errors=(403, 404, 409, 503),
                roles=ADMINS,
            ),
            Route(
                method="POST",
                path="/api/v1/policy/diffs",
                name="diff_policy",
                summary="What another policy says, and would have decided over the last 30 days; changes nothing. JSON"
                " Lines: `progress` at least each ten seconds, at the end `diff`, or `failed` and why",
                run=self.diff,
                body=DiffBody,
                stream=True,
                media=LINES,
                errors=(403, 409, 503),
                roles=ORDERS,
            ),
        ]

    async def history(self, call: Call) -> Paged:
        """All adoptions."""
        query: PageQuery = call.query
        async with self._store.reading() as connection:
            found = await policies.adoptions(connection, before=before(query), limit=query.most + 1)
        page = found[: query.most]
        return Paged([adoption_view(each) for each in page], str(page[-1].number) if len(found) > len(page) else None)

    async def one(self, call: Call) -> AdoptionFile:
        """One adoption."""
        found = await self._known(call.part("number"))
        return AdoptionFile(**msgspec.structs.asdict(adoption_view(found)), content=found.content)

    async def adopt(self, call: Call) -> AdoptionView:
        """Adopt a file, or anew what is in force."""
        body: AdoptBody = call.body
        drawn = self._draft(body.content, actor=call.actor, reason=body.reason)
        async with self._store.reading() as connection:
            taken = await policies.content_of(connection, drawn.version)
        if taken is not None and taken != drawn.content:
            raise Refused(f"version {drawn.version!r} was adopted with another content: give this one another name")
        return await self._submit(call, drawn, "adopt_policy")

    async def revert(self, call: Call) -> AdoptionView:
        """Adopt again what was adopted then, as it was then."""
        body: RevertBody = call.body
        now = self._in_force().number
        if body.number is None and now == 1:
            raise Refused("there is no adoption before the one in force")
        found = await self._known(str(body.number or now - 1))
        drawn = replace(found, actor=call.actor, reason=body.reason, reverts=found.number)
        return await self._submit(call, drawn, "revert_policy")

    async def diff(self, call: Call) -> web.StreamResponse:
        """Compare, in words and over this fleet's past."""
        mind, body = self._conductor.mind, call.body
        drawn = self._draft(body.content, actor=call.actor, reason="a comparison")
        if self._rehearsing.busy:
            raise Refused("another comparison is under way; ask again once it has ended")
        now, config = self._clock.now(), mind.config
        brief = Brief(
            config=Config(
                state_dir=config.state_dir,
                database=config.database,
                database_password_file=config.database_password_file,
                pooler=config.pooler,
            ),
            before=mind.settings,
            after=rulebook.in_force(config, drawn),
            shape=mind.shape,
            span=Span(now - DAYS * 86400.0, now),
        )
        answer = web.StreamResponse(headers={"Content-Type": LINES, "Cache-Control": "no-store"})
        async with aclosing(self._rehearsing.play(brief)) as telling:
            with suppress(ConnectionResetError):  # who asked has gone: nobody needs to know
                async for told in telling:
                    if not answer.prepared:
                        await answer.prepare(call.request)
                    await answer.write(msgspec.json.encode(_as_diff(brief, told)) + b"\n")
                await answer.write_eof()
        return answer

    def _in_force(self) -> Adoption:
        adopted = self._conductor.mind.adopted
        if adopted is None:
            raise Refused("nothing has been adopted yet: the controller is starting")
        return adopted

    def _draft(self, content: str | None, *, actor: str, reason: str) -> Adoption:
        given = self._in_force().content if content is None else content
        try:
            return rulebook.draft(given, self._conductor.mind.config, actor=actor, reason=reason)
        except ConfigError as error:
            raise InputError(str(error)) from error

    async def _known(self, number: str) -> Adoption:
        found = None
        if number.isdecimal() and number.isascii() and len(number) < 16:
            async with self._store.reading() as connection:
                found = await policies.adoption(connection, int(number))
        if found is None:
            raise not_found("adoption", number, "/api/v1/policy/adoptions")
        return found

    async def _submit(self, call: Call, drawn: Adoption, act: str) -> AdoptionView:
        audit = Audit(self._clock.now(), call.actor, act, f"policy:{drawn.version}", drawn.reason, "")
        await self._conductor.submit(
            Submission(stimuli=(Adopted(settings=drawn.settings, adoption=drawn),), audit=audit)
        )
        async with self._store.reading() as connection:
            return adoption_view(await policies.last(connection))


def _as_diff(brief: Brief, told: Progress | Decided | Failed) -> Progress | PolicyDiff | Failed:
    if not isinstance(told, Decided):
        return told
    return PolicyDiff(
        before=brief.before.policy,
        after=brief.after.policy,
        differences=differences(brief.before, brief.after, codes.ROWS),
        since=brief.span.since,
        events=told.events,
        first=told.first,
        decided=told.decided,
    )
