"""One try of one request at one replica, up to its first body byte: opened, or missed and why.

Until the first byte nothing has reached the client, so a miss costs it only time.
"""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import aiohttp
import msgspec

from engine.gateway.board import Board
from engine.gateway.probes import standing_of
from engine.gateway.routing import Pick
from engine.gateway.table import SILENT_S, Standing
from vocab.errors import Unreachable

CONNECT_S = 2.0  # loopback and data-centre connects take milliseconds
LOOK_S = 0.5  # how often a request that waits looks whether its replica has fallen silent
# A node that loses power sends nothing; the kernel asks after KEEP_IDLE_S and gives up three questions later.
KEEP_IDLE_S, KEEP_EVERY_S, KEEP_COUNT = 5, 2, 3
NOT_SENT_ON = frozenset(
    {"host", "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length", "expect",
     "authorization", "proxy-authorization", "accept-encoding", "cookie", "x-corral-panic"}
)  # fmt: skip


class Missed(msgspec.Struct, frozen=True):
    """Nothing came. ``died``: the replica had the request and broke on it; ``answer``: its own error, if any."""

    reason: str  # refused, unavailable, lost, silent or error
    standing: Standing | None = None  # what that says of the replica
    died: bool = False
    answer: "Whole | None" = None


class Whole(msgspec.Struct, frozen=True):
    """A complete answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Silent(Unreachable):
    """The replica answers no probe and sends nothing: for its requests it is gone."""


class Stuck(Unreachable):
    """The replica takes nothing new and sends nothing, and another could go on."""


class Opened:
    """A stream whose first bytes are here."""

    def __init__(self, response: aiohttp.ClientResponse, first: bytes, silent: Callable[[], bool]) -> None:
        self._response = response
        self._first = first
        self._silent = silent
        self.stuck: Callable[[], bool] = lambda: False
        """Asked when nothing has come for SILENT_S: whether it should be left."""
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def next(self) -> bytes:
        """The bytes that have come, empty at the end. Raises one of BROKEN if the replica breaks off."""
        first, self._first = self._first, b""
        while not first:
            try:
                async with asyncio.timeout(SILENT_S):
                    return await self._response.content.readany()
            except TimeoutError:
                if self._silent():
                    raise Silent from None
                if self.stuck():
                    raise Stuck from None
        return first

    def close(self) -> None:
        """Let go of the replica; if its answer is not over, it sees its client go."""
        self._response.close()


BROKEN = (aiohttp.ClientError, OSError, Silent, Stuck)  # how a connection that breaks shows itself


class Upstream:
    """The connections to replicas; use as an async context manager."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Upstream":
        # A new connection for each request: on one kept alive, a replica's orderly end looks like a death.
        connector = aiohttp.TCPConnector(force_close=True, limit=0, socket_factory=_socket)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=timeout, auto_decompress=False, skip_auto_headers=("Accept-Encoding",)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    async def open(
        self, pick: Pick, path: str, raw: bytes, headers: Mapping[str, str], *, streams: bool
    ) -> Opened | Whole | Missed:
        """Send the request to the picked replica and wait for its first bytes (all of them if it does not stream)."""
        sent = {name: value for name, value in headers.items() if name.lower() not in NOT_SENT_ON}
        if pick.panic:
            sent["x-corral-panic"] = "1"
        replica = pick.entry.replica

        def silent() -> bool:
            return self._board.standing(replica) is Standing.SILENT

        return await _while_heard(self._open(pick.entry.url + path, raw, sent, silent, streams=streams), silent)

    async def _open(
        self, url: str, raw: bytes, headers: Mapping[str, str], silent: Callable[[], bool], *, streams: bool
    ) -> Opened | Whole | Missed:
        assert self._session is not None, "use Upstream as an async context manager"
        try:
            response = await self._session.post(url, data=raw, headers=headers)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL):
            return Missed("refused", Standing.REFUSED)
        except BROKEN:
            return Missed("lost", Standing.REFUSED, died=True)
        opened = None
        try:
            if streams and response.status < 300:
                opened = Opened(response, await response.content.readany(), silent)
                return opened
            return _whole(Whole(response.status, response.headers, await response.read()))
        except BROKEN:
            return Missed("lost", Standing.REFUSED, died=True)
        finally:
            if opened is None:
                response.close()


async def _while_heard(
    work: Coroutine[Any, Any, Opened | Whole | Missed], silent: Callable[[], bool]
) -> Opened | Whole | Missed:
    """The outcome of ``work``; Missed as soon as the replica answers no probe any more."""
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=LOOK_S))[0]:
            if silent():
                return Missed("silent", died=True)
        return task.result()
    finally:
        if not task.done():
            task.cancel()


def _whole(answer: Whole) -> Whole | Missed:
    """A complete answer; one that says *not here, not now* or *I broke* is a miss."""
    if answer.status == 503:
        return Missed("unavailable", standing_of(_code(answer.body)), answer=answer)
    if answer.status >= 500:
        return Missed("error", died=True, answer=answer)
    return answer


class _Error(msgspec.Struct):
    code: str | int | None = None


class _ErrorBody(msgspec.Struct):
    error: _Error


def _code(raw: bytes) -> str:
    try:
        return str(msgspec.json.decode(raw, type=_ErrorBody).error.code)
    except msgspec.DecodeError:
        return ""


def _socket(address: Any) -> socket.socket:
    """A socket that notices a peer which has gone without a word."""
    family, kind, protocol, _, _ = address
    door = socket.socket(family, kind, protocol)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    door.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEP_IDLE_S)
    door.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEP_EVERY_S)
    door.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEP_COUNT)
    door.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * (KEEP_IDLE_S + KEEP_EVERY_S * KEEP_COUNT))
    return door
