"""One row of the interface, and how a row becomes an aiohttp route.

A row names the types of its query, body and answer; what arrives is decoded into them before the row's
function runs, and a mistake is answered with 400 naming the field.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec
from aiohttp import web

from vocab.errors import InputError
from wire.server import Handler, decode, reply


class Call(msgspec.Struct, frozen=True):
    """A request, decoded."""

    request: web.Request
    query: Any
    body: Any

    def part(self, name: str) -> str:
        """A part of the path, such as ``uuid`` of ``/gpus/{uuid}``."""
        return self.request.match_info[name]


Run = Callable[[Call], Awaitable[Any]]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One row. ``raw``: the function decodes the body itself; ``stream``: it answers by itself."""

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
    errors: tuple[int, ...] = ()


def _query(request: web.Request, kind: Any) -> Any:
    try:
        return msgspec.convert(dict(request.query), kind, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"the query is wrong: {error}") from error


def _endpoint(route: Route) -> Handler:
    async def endpoint(request: web.Request) -> web.StreamResponse:
        query = None if route.query is None else _query(request, route.query)
        raw = await request.read() if route.body is not None else b""
        body = raw if route.raw or route.body is None else decode(raw, route.body)
        answer = await route.run(Call(request, query, body))
        return answer if isinstance(answer, web.StreamResponse) else reply(answer, route.status)

    return endpoint


def add_routes(app: web.Application, routes: Iterable[Route]) -> None:
    """Serve these rows."""
    for route in routes:
        app.router.add_route(route.method, route.path, _endpoint(route))


def not_found(what: str, name: str, listing: str) -> web.HTTPNotFound:
    """The answer for a name that does not exist; ``listing`` is the path that shows which do."""
    printable = "".join(letter for letter in name[:80] if letter.isprintable())
    return web.HTTPNotFound(reason=f"there is no {what} {printable!r}; {listing} lists them")
