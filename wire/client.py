"""The HTTP client set-up that all processes share. What fails comes out as Unreachable or Refused."""

import contextlib
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes, urlsplit

import aiohttp
import msgspec

from vocab.errors import InputError, Refused, Unreachable

T = TypeVar("T")

TOO_MANY = 429
WRONG = frozenset({400, 413, 415, 422})  # the request itself: the same again will never be taken
MOST_ASKED_S = 300.0  # nobody may send us away for longer
CONNECT_S = 2.0  # loopback and data-centre connects take milliseconds; past this the peer is gone


def _reason(error: Exception) -> str:
    """Why nothing came, in few words."""
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, ConnectionRefusedError):
        return "connection refused"  # aiohttp's words name the socket twice, and TLS where there is none
    return str(error) or type(error).__name__


class Client:
    """JSON over HTTP to one base address; use as an async context manager.

    A name and password in the address are shown to the server, and never told: ``base`` is without them.
    ``socket``: the path of a Unix socket that is asked in its place; ``base`` then only names it.
    """

    def __init__(
        self, base: str, *, token: str | None = None, tls: ssl.SSLContext | None = None, socket: str | None = None
    ) -> None:
        self.base, self._login = _without_login(base.rstrip("/"))
        self._token = token
        self._tls = tls
        self._socket = socket
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Client":
        shown = f"Bearer {self._token}" if self._token else self._login
        headers = {"Authorization": shown} if shown else {}
        connector: aiohttp.BaseConnector
        if self._socket is not None:
            connector = aiohttp.UnixConnector(self._socket)
        else:
            connector = aiohttp.TCPConnector(ssl=self._tls or True)
        self._session = aiohttp.ClientSession(headers=headers, connector=connector)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    @property
    def session(self) -> aiohttp.ClientSession:
        """The open session."""
        assert self._session is not None, "use Client as an async context manager"
        return self._session

    async def call(
        self, method: str, path: str, kind: type[T], body: Any = None, *, timeout_s: float = 10.0, **query: Any
    ) -> T:
        """Send ``body`` as JSON and decode the answer as ``kind``.

        Raises Unreachable (no answer in time, 429 or 5xx), InputError (the request is wrong) or Refused (another 4xx).
        """
        raw = await self.fetch(method, path, body, timeout_s=timeout_s, **query)
        return msgspec.json.decode(raw or b"null", type=kind)

    async def fetch(self, method: str, path: str, body: Any = None, *, timeout_s: float = 10.0, **query: Any) -> bytes:
        """As ``call``; the answer as it came."""
        url = self.base + path
        data = None if body is None else msgspec.json.encode(body)
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_S)
        try:
            async with self.session.request(
                method,
                url,
                data=data,
                params={key: str(value) for key, value in query.items() if value is not None},
                headers={"Content-Type": "application/json"},
                timeout=timeout,
            ) as response:
                raw = await response.read()
                status, asked = response.status, response.headers.get("Retry-After", "")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"{url} does not answer: {_reason(error)}") from error
        if status >= 400:
            raise _failure(url, status, raw, asked)
        return raw

    async def chunks(self, path: str, *, silence_s: float = 60.0) -> AsyncIterator[bytes]:
        """What a GET answers, piece by piece. Raises as ``call`` does, also Unreachable when it breaks off."""
        url = self.base + path
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=silence_s)
        try:
            async with self.session.get(url, timeout=timeout) as response:
                if response.status >= 400:
                    asked = response.headers.get("Retry-After", "")
                    raise _failure(url, response.status, await response.read(), asked)
                async for chunk in response.content.iter_chunked(2**16):
                    yield chunk
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unreachable(f"{url} does not answer, or broke off: {_reason(error)}") from error

    async def lines(
        self, method: str, path: str, kind: Any, body: Any = None, *, silence_s: float = 60.0
    ) -> AsyncIterator[Any]:
        """An answer of JSON Lines, each as it comes and decoded as ``kind``.

        Raises as ``call`` does, also Unreachable when nothing comes for ``silence_s``.
        """
        url = self.base + path
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=silence_s)
        try:
            async with self.session.request(
                method,
                url,
                data=None if body is None else msgspec.json.encode(body),
                headers={"Content-Type": "application/json"},
                timeout=timeout,
            ) as response:
                if response.status >= 400:
                    asked = response.headers.get("Retry-After", "")
                    raise _failure(url, response.status, await response.read(), asked)
                async for line in response.content:
                    yield msgspec.json.decode(line, type=kind)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"{url} does not answer: {_reason(error)}") from error
        except (msgspec.DecodeError, ValueError) as error:  # a line that was cut, or one without an end
            raise Unreachable(f"{url} broke off its answer; ask again: {error}") from error


def _without_login(address: str) -> tuple[str, str | None]:
    try:
        parts = urlsplit(address)
    except ValueError:  # no address at all: whoever asks is told so
        return address, None
    login, given, place = parts.netloc.rpartition("@")
    if not given:
        return address, None
    login += "" if ":" in login else ":"
    return parts._replace(netloc=place).geturl(), f"Basic {b64encode(unquote_to_bytes(login)).decode()}"


class _Fault(msgspec.Struct, frozen=True):
    message: str = ""


class _Problem(msgspec.Struct):
    """What of a problem we say; a process one version older has only ``error``."""

    detail: str = ""
    error: _Fault = _Fault()


def _failure(url: str, status: int, raw: bytes, asked: str) -> Exception:
    message = ""
    with contextlib.suppress(msgspec.DecodeError):
        told = msgspec.json.decode(raw, type=_Problem)
        message = told.detail or told.error.message
    message = message or raw[:200].decode(errors="replace")  # no problem: a readiness that says why, another's page
    if status >= 500 or status == TOO_MANY:
        wait_s = min(float(asked), MOST_ASKED_S) if asked.isdecimal() else 0.0
        return Unreachable(f"{url} answered {status}: {message}", retry_after_s=wait_s)
    return InputError(message) if status in WRONG else Refused(message or f"{url} answered {status}")
