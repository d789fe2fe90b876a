"""Who asks, and whether they may: tokens, the certificate that a node shows, and the roles that each route names.

Deny by default: a route that names no roles is for admins. On loopback without ``token_file`` nobody is asked for
a token, and whoever reaches the socket is the operator of this machine. A browser that has signed in shows its session:
with that it may look, and send the forms of the pages; whatever else changes something asks for the token itself.
"""

import asyncio
import hmac
from collections.abc import Mapping
from urllib.parse import quote

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

from controller.door.limits import Rates
from controller.door.sessions import SAFE, Sessions
from controller.door.tokens import Tokens
from vocab.clock import Clock
from vocab.roles import ADMINS, Role
from wire.server import Handler, is_open, unauthorized
from wire.tls import names

MASTER = "token_file"  # how the audit names the bearer of the configuration's own token
LOCAL = "operator"  # and whoever is on this machine, where no token is asked for


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks. ``node``: the only one for which it may speak, if it is bound to one; ``token``: its id."""

    name: str
    role: Role
    node: str | None = None
    token: str | None = None

    def must_be(self, node: str) -> None:
        """Let pass who may speak for ``node``. Raises HTTPForbidden."""
        if self.node is not None and self.node != node:
            asked = "".join(letter for letter in node[:80] if letter.isprintable())
            raise web.HTTPForbidden(
                reason=f"token {self.name!r} is node {self.node!r} and speaks for no other, such as {asked!r}"
            )


CALLER = web.RequestKey("caller", Caller)
FORM = "application/x-www-form-urlencoded"
Roles = Mapping[tuple[str, str], frozenset[Role]]  # by method and path, as the table of routes has them


class Access:
    """Knows callers by what they show. ``master`` None: nobody is asked; ``certified``: nodes show certificates."""

    def __init__(self, master: str | None, tokens: Tokens, *, certified: bool, clock: Clock) -> None:
        self._master = master
        self._tokens = tokens
        self._certified = certified
        self.sessions: Sessions[Caller] = Sessions(clock, self._still_counts)

    def caller(self, request: web.Request) -> Caller | None:
        """Who asks; None for a token that does not count."""
        given = request.headers.get("Authorization", "")
        if not given and (request.method in SAFE or request.content_type == FORM):
            return self.sessions.find(request) or self._local()
        return self.by_header(given)

    def by_header(self, authorization: str) -> Caller | None:
        """Who asks with this header (empty: with none), where no session counts."""
        scheme, _, given = authorization.partition(" ")
        return (self.bearer(given) if scheme.lower() == "bearer" else None) or self._local()

    def bearer(self, given: str) -> Caller | None:
        """Whose token this is."""
        token = self._tokens.find(given)
        if token is not None:
            return Caller(name=token.name, role=token.role, node=token.node, token=token.id)
        if self._master is not None and hmac.compare_digest(_bytes(given), _bytes(self._master)):
            return Caller(name=MASTER, role=Role.ADMIN)
        return None

    @property
    def asks(self) -> bool:
        """Whether anybody is asked for a token."""
        return self._master is not None

    def _local(self) -> Caller | None:
        return None if self._master is not None else Caller(name=LOCAL, role=Role.ADMIN)

    def _still_counts(self, caller: Caller) -> bool:
        token = None if caller.token is None else self._tokens.named(caller.token)
        return caller.token is None or (token is not None and self._tokens.counts(token))

    def must_be_certified(self, transport: asyncio.BaseTransport | None, node: str) -> None:
        """Let pass whose certificate names ``node``, where certificates are asked for. Raises HTTPForbidden."""
        if not self._certified:
            return
        shown = names(transport.get_extra_info("peercert") if transport else None)
        if node.lower() not in shown:
            named = ", ".join(sorted(shown)) or "nobody"
            raise web.HTTPForbidden(
                reason=f"this is a token of node {node!r}, and the certificate names {named[:200]!r}"
            )

    def check_certificate(self, caller: Caller, transport: asyncio.BaseTransport | None) -> None:
        """Let pass who is no node, or shows its certificate where that is asked for. Raises HTTPForbidden."""
        if caller.role is Role.NODE and caller.node is not None:
            self.must_be_certified(transport, caller.node)

    def count(self, caller: Caller, address: str, rates: Rates) -> None:
        """Count a request from ``address``. Raises HTTPTooManyRequests."""
        if self._master is not None:
            rates.take((caller.token or caller.name, address))

    def gate(
        self, open_paths: frozenset[str], roles: Roles, rates: Rates, pages: frozenset[str] = frozenset()
    ) -> Middleware:
        """The middleware that lets in; from ``pages`` (routes, as ``roles`` names them) it leads to signing in."""

        @web.middleware
        async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
            if is_open(request.path, open_paths):
                if request.method not in SAFE:
                    rates.take(("", request.remote or ""))
                return await handler(request)
            caller = self.caller(request)
            if caller is None:
                rates.take(("", request.remote or ""))
                if _canonical(request) in pages and request.method in SAFE:
                    raise web.HTTPSeeOther(f"/sign-in?next={quote(request.path_qs, safe='')}")
                return unauthorized()
            self.count(caller, request.remote or "", rates)
            _must_have_role(caller, request, roles)
            self.check_certificate(caller, request.transport)
            request[CALLER] = caller
            return await handler(request)

        return middleware


def _must_have_role(caller: Caller, request: web.Request, roles: Roles) -> None:
    if request.match_info.http_exception is not None:  # 404 or 405: the router says which
        return
    method = "GET" if request.method == "HEAD" else request.method
    may = roles.get((method, _canonical(request)), ADMINS)
    if caller.role not in may:
        wanted = ", ".join(sorted(may))
        raise web.HTTPForbidden(
            reason=f"token {caller.name!r} has the role {caller.role.value}; this needs one of: {wanted}"
        )


def _canonical(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return resource.canonical if resource else ""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")  # a header may hold any bytes
