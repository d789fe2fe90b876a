"""What aiohttp refuses before anything of ours sees it (a line that is too long, what is no HTTP), in our own form."""

from typing import Any

import msgspec
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from vocab.problems import MEDIA_TYPE, problem

MOST = 200  # characters of what is said: it quotes what was sent


class Connection(RequestHandler):
    """One connection, which refuses with problem+json."""

    __slots__ = ()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """As aiohttp's: logged, answered, and the connection is closed."""
        super().handle_error(request, status, exc, message)
        said = " ".join((message or "").split())[:MOST] or "internal error; the log of this process has the details"
        told = msgspec.json.encode(problem(status, said, kind="http"))
        answer = web.Response(body=told, status=status, content_type=MEDIA_TYPE)
        answer.force_close()
        return answer


class Server(web.Server):
    """Makes the connections in place of ``made``, with the settings that its runner was given."""

    def __init__(self, made: web.Server, **settings: Any) -> None:
        super().__init__(made.request_handler, request_factory=made.request_factory, **settings)

    def __call__(self) -> RequestHandler:
        """A connection, as aiohttp asks for one."""
        return self.connection(loop=self._loop, **self._kwargs)

    def connection(self, **settings: Any) -> Connection:
        """A connection with these settings."""
        return Connection(self, **settings)


class Runner(web.AppRunner):
    """As aiohttp's, with these connections."""

    __slots__ = ()

    async def _make_server(self) -> web.Server:
        return Server(await super()._make_server(), **self._kwargs)
