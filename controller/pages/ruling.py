"""The pages of policy and audit: what is in force, how often it was right, and what people ordered."""

from typing import Annotated

import msgspec
from aiohttp import web

from controller.api.forms import AuditQuery
from controller.api.policy import PolicyInForce, RuleInForce, adoption_view
from controller.api.reads import Reads
from controller.api.route import Call
from controller.deciding.conductor import Conductor
from controller.pages.frame import Frame
from controller.pages.queries import asked, older
from controller.pages.would import is_would, would
from controller.store import pages, policies
from controller.store.store import Store
from vocab.clock import Clock
from vocab.lines import AnyLine

WEEK_S = 7 * 86400.0
MOST_WOULD = 1000
MOST_ADOPTIONS = 20
MOST_RULES = 100  # on one page: the catalogue has several hundred


class RulesQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Rules whose code has this text; ``all``: as many as there are."""

    text: Annotated[str, msgspec.Meta(max_length=100)] = ""
    all: bool = False


class Ruling:
    """The pages of what Corral may do, and of what it was told to."""

    def __init__(self, frame: Frame, conductor: Conductor, store: Store, reads: Reads, clock: Clock) -> None:
        self._frame = frame
        self._conductor = conductor
        self._store = store
        self._reads = reads
        self._clock = clock

    async def policy(self, request: web.Request) -> web.StreamResponse:
        """What is in force, since when, how often it was right, and what a higher level would have done."""
        view = await self._conductor.view()
        async with self._store.reading() as connection:
            adoptions = await policies.adoptions(connection, before=None, limit=MOST_ADOPTIONS)
        policy = await self._reads.policy(Call(request, None, None))
        return self._frame.render(
            request, "policy.html", view, policy=policy, rules=_unlike(policy),
            adoptions=[adoption_view(each) for each in adoptions], would=would(await self._said()),
        )  # fmt: skip

    async def rules(self, request: web.Request) -> web.StreamResponse:
        """The rule of each code, or of those that are looked for."""
        view, query = await self._conductor.view(), asked(request, RulesQuery)
        policy = await self._reads.policy(Call(request, None, None))
        found = [rule for rule in policy.rules if query.text.lower().strip() in rule.code]
        shown = found if query.all else found[:MOST_RULES]
        return self._frame.render(request, "rules.html", view, policy=policy, query=query, found=found, rules=shown)

    async def _said(self) -> list[AnyLine]:
        """What was only said in the last week."""
        since = self._clock.now() - WEEK_S
        async with self._store.reading() as connection:
            found: list[AnyLine] = []
            for kind in ("hold", "action"):
                lines, _ = await pages.lines_before(
                    connection, kind, None, MOST_WOULD, matches=lambda line: line.at >= since and is_would(line)
                )
                found += lines
        return found

    async def audit(self, request: web.Request) -> web.StreamResponse:
        """What people ordered, the latest first."""
        view, query = await self._conductor.view(), asked(request, AuditQuery)
        found = await self._reads.audit(Call(request, query, None))
        return self._frame.render(
            request, "audit.html", view, query=query, rows=list(reversed(found.items)),
            older=older(request, query, found),
        )  # fmt: skip


def _unlike(policy: PolicyInForce) -> list[RuleInForce]:
    """The rules that are not the catalogue's, or do not act as they say."""
    return [rule for rule in policy.rules if rule.differs or rule.shadow or rule.code in policy.shadowed]
