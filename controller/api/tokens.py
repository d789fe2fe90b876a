"""Tokens: made and revoked by admins, and one-time tokens traded by nodes for their own."""

from typing import Annotated

import msgspec

from controller.api.forms import Reason, ReasonBody
from controller.api.paging import Paged, PageQuery, page
from controller.api.route import Call, Route, not_found
from controller.door.access import Access
from controller.door.tokens import Issued, Tokens
from controller.store.tokens import Token
from vocab.errors import InputError, Refused
from vocab.roles import ADMINS, ENROLLS, Role

DAY_S = 86_400
ONCE_S = 3600.0  # how long a one-time token waits, unless told otherwise
ONCE_MOST_S = 7.0 * DAY_S

TokenName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}\Z")]
NodeName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,252}\Z")]


class TokenBody(msgspec.Struct, frozen=True, kw_only=True):
    """A token to be made. ``node``: the only one that it may speak for; ``ttl_s``: left out, until it is revoked."""

    name: TokenName
    role: Role
    node: NodeName | None = None
    ttl_s: Annotated[float, msgspec.Meta(gt=0, le=3650 * DAY_S)] | None = None
    reason: Reason = "asked for"


class TokenView(msgspec.Struct, frozen=True, kw_only=True):
    """What can be shown of a token. ``counts``: its bearer is let in."""

    id: str
    name: str
    role: Role
    node: str | None
    counts: bool
    made_at: float
    made_by: str
    expires_at: float | None
    used_at: float | None
    revoked_at: float | None


class TokenMade(msgspec.Struct, frozen=True, kw_only=True):
    """A new token. ``secret`` is shown this once."""

    token: TokenView
    secret: str


class EnrollBody(msgspec.Struct, frozen=True, kw_only=True):
    """The node that trades the one-time token, which is sent as its bearer."""

    node: NodeName


class TokenRoutes:
    """The routes over the tokens of this fleet."""

    def __init__(self, tokens: Tokens, access: Access) -> None:
        self._tokens = tokens
        self._access = access

    def routes(self) -> list[Route]:
        """The rows."""
        return [
            Route(
                method="GET",
                path="/api/v1/tokens",
                name="tokens",
                summary="All tokens, also those that count no more; never their secrets",
                run=self.all,
                answer=list[TokenView],
                query=PageQuery,
                paged=True,
                roles=ADMINS,
            ),
            Route(
                method="POST",
                path="/api/v1/tokens",
                name="create_tokens",
                summary="Make a token; its secret is in this answer and nowhere else",
                run=self.make,
                body=TokenBody,
                answer=TokenMade,
                status=201,
                errors=(409,),
                roles=ADMINS,
            ),
            Route(
                method="DELETE",
                path="/api/v1/tokens/{id}",
                name="delete_tokens",
                summary="Revoke a token: at once here, within 5 s on other controllers",
                run=self.revoke,
                body=ReasonBody,
                answer=TokenView,
                errors=(404,),
                roles=ADMINS,
            ),
            Route(
                method="POST",
                path="/api/v1/enroll",
                name="enroll",
                summary="Trade a one-time token for the node's own token",
                run=self.enroll,
                body=EnrollBody,
                answer=TokenMade,
                status=201,
                errors=(409,),
                roles=ENROLLS,
            ),
        ]

    async def all(self, call: Call) -> Paged:
        """All tokens."""
        return page([self._view(each) for each in self._tokens.all()], lambda each: each.id, call.query)

    async def make(self, call: Call) -> TokenMade:
        """Make one."""
        body: TokenBody = call.body
        ttl_s = body.ttl_s
        if body.role is Role.ENROLL:
            ttl_s = ttl_s or ONCE_S
            if ttl_s > ONCE_MOST_S:
                raise InputError(f"`ttl_s` is {ttl_s:g}: a one-time token waits a week at most ({ONCE_MOST_S:g})")
        issued = await self._tokens.make(
            name=body.name, role=body.role, node=body.node, ttl_s=ttl_s, by=call.actor, reason=body.reason
        )
        return self._made(issued)

    async def revoke(self, call: Call) -> TokenView:
        """Revoke one."""
        name = call.part("id")
        token = self._tokens.named(name)
        if token is None:
            raise not_found("token", name, "/api/v1/tokens")
        return self._view(await self._tokens.revoke(token, by=call.actor, reason=call.body.reason))

    async def enroll(self, call: Call) -> TokenMade:
        """Trade the token that the caller showed."""
        node = call.body.node
        if call.caller.token is None:
            raise Refused("only a one-time token can be traded; make one: corral token create --role enroll")
        self._access.must_be_certified(call.request.transport, node)
        return self._made(await self._tokens.enroll(call.caller.token, node, by=call.actor))

    def _made(self, issued: Issued) -> TokenMade:
        return TokenMade(token=self._view(issued.token), secret=issued.secret)

    def _view(self, token: Token) -> TokenView:
        shown = {name: getattr(token, name) for name in TokenView.__struct_fields__ if name != "counts"}
        return TokenView(**shown, counts=self._tokens.counts(token))
