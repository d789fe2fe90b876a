"""One row of the interface, and how a row becomes an aiohttp route.

A row names the types of its query, body and answer, and the roles that may ask; what arrives is decoded into these
types before the row's function runs, and a mistake is answered with 400 naming the field.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec
from aiohttp import web

from controller.api import etag
from controller.api.paging import Paged, shown
from controller.door.access import CALLER, Caller
from controller.door.limits import ANSWER_S, BODY_BYTES
from vocab.errors import InputError, Unreachable
from vocab.roles import LOOKS, ORDERS, Role
from wire.server import MAX_BODY_BYTES, Handler, decode, reply


class Call(msgspec.Struct, frozen=True):
    """A request, decoded."""

    request: web.Request
    query: Any
    body: Any

    def part(self, name: str) -> str:
        """A part of the path, such as ``uuid`` of ``/gpus/{uuid}``."""
        return self.request.match_info[name]

    @property
    def caller(self) -> Caller:
        """Who asks."""
        return self.request[CALLER]

    @property
    def actor(self) -> str:
        """Who asks and from where, for the audit."""
        return f"{self.caller.name} at {self.request.remote or 'unknown'}"


Run = Callable[[Call], Awaitable[Any]]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One row.

    ``raw``: the function decodes the body itself. ``stream``: it answers by itself, for as long as it likes.
    ``roles``: who may ask; left out, who looks for a GET and who orders for everything else. ``paged``: the function
    answers with a ``Paged`` of ``answer`` (a list). ``current``: what the thing is now, for a change that may be bound
    to what the caller saw (``If-Match``).
    """

    method: str
    path: str
    name: str
    summary: str
    run: Run
    answer: Any = None
    query: Any = None
    body: Any = None
    status: int = 200
    raw: bool = False
    stream: bool = False
    media: str = "text/event-stream"  # of a stream
    errors: tuple[int, ...] = ()
    roles: frozenset[Role] | None = None
    paged: bool = False
    current: Run | None = None
    most_bytes: int = BODY_BYTES
    answer_s: float = ANSWER_S

    @property
    def may(self) -> frozenset[Role]:
        """The roles that may ask."""
        if self.roles is not None:
            return self.roles
        return LOOKS if self.method == "GET" else ORDERS

    @property
    def tagged(self) -> bool:
        """Whether the answer has an ETag."""
        return self.method == "GET" and not self.stream


def _query(request: web.Request, kind: Any) -> Any:
    given = dict(request.query)
    try:
        query = msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"the query is wrong: {error}") from error
    for name, value in given.items():
        if getattr(query, name, value) is None:  # what the library takes the word null for
            raise InputError(f"the query is wrong: `{name}` is {value[:40]!r}; leave it out")
    return query


async def _body(request: web.Request, route: Route) -> Any:
    if route.body is None:
        return None
    limited = request if route.most_bytes == MAX_BODY_BYTES else request.clone(client_max_size=route.most_bytes)
    raw = await limited.read()
    return raw if route.raw else decode(raw, route.body)


async def _answer(route: Route, request: web.Request) -> web.StreamResponse:
    query = None if route.query is None else _query(request, route.query)
    call = Call(request, query, await _body(request, route))
    if route.current is not None and "If-Match" in request.headers:
        etag.must_match(request, reply(await route.current(call)))
    answer = await route.run(call)
    if isinstance(answer, web.StreamResponse):
        return answer
    body, headers = shown(request, answer) if isinstance(answer, Paged) else (answer, None)
    response = reply(body, route.status, headers)
    return etag.tagged(request, response) if route.tagged else response


def _endpoint(route: Route) -> Handler:
    async def endpoint(request: web.Request) -> web.StreamResponse:
        try:
            async with asyncio.timeout(None if route.stream else route.answer_s):
                return await _answer(route, request)
        except TimeoutError as error:
            raise Unreachable(f"the request was not whole, or not answered, within {route.answer_s:g} s") from error

    return endpoint


def add_routes(app: web.Application, routes: Iterable[Route]) -> None:
    """Serve these rows."""
    for route in routes:
        app.router.add_route(route.method, route.path, _endpoint(route))


def not_found(what: str, name: str, listing: str) -> web.HTTPNotFound:
    """The answer for a name that does not exist; ``listing`` is the path that shows which do."""
    printable = "".join(letter for letter in name[:80] if letter.isprintable())
    return web.HTTPNotFound(reason=f"there is no {what} {printable!r}; {listing} lists them")
