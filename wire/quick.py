"""Answers that need no waiting, given where a request is parsed: what comes a thousand times a second costs little.

On its way to a function and back, a request of aiohttp's becomes a task, a ``Request`` and a ``Response``, and passes
every middleware. Where thousands of nodes say each few seconds that nothing is new, that is most of what a controller
does. So the answer to such a request is asked for as soon as aiohttp's parser has read it. What gets none, and all that
is unusual about a request or its connection, goes aiohttp's way; nothing is parsed here. It stands on insides of
aiohttp: with a series of it that has not been tried, everything goes aiohttp's way.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Protocol, cast

import aiohttp
from aiohttp import HttpVersion11, StreamReader, web
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http_parser import RawRequestMessage
from multidict import CIMultiDictProxy

from wire.refusals import Connection, Server

log = logging.getLogger(__name__)

TRIED = "3.14."  # of aiohttp
MOST_BYTES = 64 * 1024  # of a body; what is larger is not usual, and waits its turn

Messages = Sequence[tuple[RawRequestMessage, StreamReader]]


class Quick(Protocol):
    """What is answered at once: requests of one method and path."""

    method: str
    path: str

    def answer(self, headers: CIMultiDictProxy[str], body: bytes, transport: asyncio.Transport) -> bytes | None:
        """The JSON of a 200; None for what is not to be answered here, and comes again as any other request."""
        ...


QUICK = web.AppKey[Quick]("quick")  # an application's, if it has one


def is_tried(version: str = aiohttp.__version__) -> bool:
    """Whether this aiohttp has the insides that a quick answer needs; the log says if not."""
    tried = version.startswith(TRIED)
    if not tried:
        log.warning("no quick answers: they were tried with another aiohttp", extra={"tried": TRIED, "is": version})
    return tried


class Runner(web.AppRunner):
    """As aiohttp's, for an application of which ``quick`` answers some requests at once."""

    __slots__ = ("_quick",)

    def __init__(self, app: web.Application, quick: Quick, **settings: Any) -> None:
        super().__init__(app, **settings)
        self._quick = quick

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        return _Server(made, self._quick, **self._kwargs)


class _Server(Server):
    """Makes the connections of ``made``."""

    def __init__(self, made: web.Server, quick: Quick, **settings: Any) -> None:
        super().__init__(made, **settings)
        self._quick = quick

    def connection(self, **settings: Any) -> Connection:
        return _Connection(self, self._quick, **settings)


class _Connection(Connection):
    """One connection. Its parser gives on what was not answered at once."""

    __slots__ = ("_quick",)

    def __init__(self, server: web.Server, quick: Quick, **settings: Any) -> None:
        super().__init__(server, **settings)
        self._quick = quick
        self._parser = cast("Any", _Parser(self._parser, self))

    def left(self, messages: Messages) -> Messages:
        """Those of the messages that are not answered now: none, or all."""
        if len(messages) != 1 or not self._is_idle():
            return messages
        [(message, payload)] = messages
        if not self._is_usual(message) or not payload.is_eof() or payload.total_bytes > MOST_BYTES:
            return messages
        assert self.transport is not None
        body = payload.read_nowait()
        answer = self._answer(message.headers, body, self.transport)
        if answer is None:
            return [(message, self._unread(body))]
        self.transport.write(_HEAD % (len(answer), rfc822_formatted_time().encode()) + answer)
        self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        return []

    def _answer(self, headers: CIMultiDictProxy[str], body: bytes, transport: asyncio.Transport) -> bytes | None:
        try:
            return self._quick.answer(headers, body, transport)
        except Exception:  # the edge of a request: raised from here, the connection would end without an answer
            log.exception("a quick answer failed; the request goes the long way")
            return None

    def _is_idle(self) -> bool:
        """Whether nothing is under way on it, so that an answer would not overtake another one."""
        waits = self._waiter is not None and not self._waiter.done()
        return waits and not self._messages and not self._paused and self.transport is not None

    def _is_usual(self, message: RawRequestMessage) -> bool:
        if message.path != self._quick.path or message.method != self._quick.method:
            return False
        plain = not (message.chunked or message.compression or message.upgrade or message.should_close)
        return plain and message.version == HttpVersion11 and "Expect" not in message.headers

    def _unread(self, body: bytes) -> StreamReader:
        again = StreamReader(self, MOST_BYTES, loop=self._loop)
        again.feed_data(body)
        again.feed_eof()
        return again


class _Parser:
    """aiohttp's parser, which gives on what is left."""

    def __init__(self, parser: Any, connection: _Connection) -> None:
        self._parser = parser
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)

    def feed_data(self, data: bytes) -> tuple[Messages, bool, bytes]:
        """As aiohttp calls it: whole messages, whether another protocol follows, and what of it has arrived."""
        messages, upgraded, tail = self._parser.feed_data(data)
        left = self._connection.left(messages) if not upgraded else messages
        if messages and not left:
            self._parser.message_consumed()
        return left, upgraded, tail


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nDate: %s\r\n\r\n"
