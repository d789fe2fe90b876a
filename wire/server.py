"""The HTTP server set-up that all processes share: health, readiness, metrics, tokens, errors as problem+json.

Loopback needs no token; any other address needs one and TLS, or the process refuses to start. An error of ours
becomes a ``vocab.problems.Problem`` with the status that its class stands for.
"""

import asyncio
import hmac
import logging
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

from vocab.errors import ConfigError, CorralError, InputError, Refused, Unreachable
from vocab.problems import MEDIA_TYPE, problem
from wire import refusals
from wire.config import is_loopback, split_address
from wire.exposition import Exposition
from wire.quick import QUICK, Runner, is_tried

log = logging.getLogger(__name__)

Answer = Callable[[], tuple[bool, str]]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

OPEN_PATHS = frozenset({"/healthz", "/readyz", "/health", "/ready"})  # answers without secrets
RETRY_AFTER_S = 2  # what a busy server asks for: a few of its writes
MAX_BODY_BYTES = 16 * 2**20  # a full batch of an 8-GPU node is under 1 MiB
MAX_LINE_BYTES = 8190  # of the request line and of one header: what other servers allow as well
MAX_HEADERS = 100
IDLE_S = 75.0  # also for a caller that never ends its headers; above the 60 s of proxies
KEPT_HEADERS = ("Allow", "Retry-After", "WWW-Authenticate")


def reply(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """``body`` as JSON."""
    return web.Response(
        body=msgspec.json.encode(body, enc_hook=str),
        status=status,
        content_type="application/json",
        headers=headers,
    )


def error_reply(kind: str, message: str, status: int, headers: dict[str, str] | None = None) -> web.Response:
    """An error as problem+json; ``kind`` names it for programs."""
    response = reply(problem(status, message, kind=kind), status, headers)
    response.content_type = MEDIA_TYPE
    return response


def decode(raw: bytes, kind: Any) -> Any:
    """JSON bytes as ``kind``. Raises InputError naming the field that is wrong."""
    try:
        return msgspec.json.decode(raw or b"null", type=kind)
    except msgspec.DecodeError as error:
        raise InputError(f"the request's body is wrong: {error}") from error


def _status(error: CorralError) -> int:
    for kind, status in ((InputError, 400), (Refused, 409), (Unreachable, 503)):
        if isinstance(error, kind):
            return status
    return 500


@web.middleware
async def errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn exceptions into problems; what nobody expected is logged and answered with 500."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        kept = {name: error.headers[name] for name in KEPT_HEADERS if name in error.headers}
        return error_reply("http", _detail(request, error), error.status, kept)
    except CorralError as error:
        later = {"Retry-After": str(RETRY_AFTER_S)} if _status(error) == 503 else None
        return error_reply(type(error).__name__, str(error), _status(error), later)
    except (asyncio.CancelledError, ConnectionResetError):
        raise
    except Exception:
        log.exception("request failed", extra={"path": request.path})
        return error_reply("internal", "internal error; the log of this process has the details", 500)


def _detail(request: web.Request, error: web.HTTPException) -> str:
    """What we said ourselves, or else in our words what aiohttp found."""
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return error.text or error.reason
    if error.reason != HTTPStatus(error.status).phrase:
        return error.reason
    if isinstance(error, web.HTTPNotFound):
        return f"nothing is served at {request.path[:200]}"
    return f"{request.method[:20]} {request.path[:200]}: {error.reason}"


def is_open(path: str, open_paths: frozenset[str]) -> bool:
    """Whether ``path`` needs no token; an open path that ends in ``/*`` opens what lies right below it."""
    return path in OPEN_PATHS or path in open_paths or f"{path.rpartition('/')[0]}/*" in open_paths


def unauthorized(why: str = "a valid token is needed: set CORRAL_TOKEN_FILE") -> web.Response:
    """The answer to who shows no token that counts."""
    return error_reply("unauthorized", why, 401, {"WWW-Authenticate": "Bearer"})


def token_gate(token: str | None, open_paths: frozenset[str] = frozenset()) -> Middleware:
    """A middleware that asks for ``Authorization: Bearer`` when there is a token.

    ``open_paths`` need none, beside health and readiness; one that ends in ``/*`` opens what lies right
    below it. Only what holds no facts of the fleet belongs there, such as the shell of a page.
    """

    @web.middleware
    async def gate(request: web.Request, handler: Handler) -> web.StreamResponse:
        if token is None or is_open(request.path, open_paths):
            return await handler(request)
        given = request.headers.get("Authorization", "").removeprefix("Bearer ").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, token.encode()):
            return unauthorized()
        return await handler(request)

    return gate


def read_token(path: Path | None) -> str | None:
    """The token in a file, or None without a file. Raises ConfigError if others may read it."""
    if path is None:
        return None
    try:
        if path.stat().st_mode & 0o007:
            raise ConfigError(f"{path}: others can read this token; run: chmod o-rwx {path}")
        return path.read_text().strip()
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the token: {error.strerror}") from error


def make_app(
    *,
    ready: Answer,
    metrics: Exposition,
    token: str | None = None,
    open_paths: frozenset[str] = frozenset(),
    healthy: Answer | None = None,
    gate: Middleware | None = None,
) -> web.Application:
    """An application with /healthz, /readyz and /metrics; the caller adds its own routes.

    ``gate`` lets in and turns away in place of the one that compares with ``token``.

    ``healthy`` is for a process that can answer and yet be dead inside: /healthz then says 503 and why.
    """
    app = web.Application(middlewares=[errors, gate or token_gate(token, open_paths)], client_max_size=MAX_BODY_BYTES)

    async def healthz(_: web.Request) -> web.Response:
        ok, why = healthy() if healthy else (True, "ok")
        return reply({"status": why}, 200 if ok else 503)

    async def readyz(_: web.Request) -> web.Response:
        ok, why = ready()
        return reply({"ready": ok, "reason": why}, 200 if ok else 503)

    async def scrape(_: web.Request) -> web.Response:
        body, content_type = await metrics.scrape()
        return web.Response(body=body, headers={"Content-Type": content_type})

    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", scrape)
    return app


async def listen(
    app: web.Application,
    address: str,
    *,
    token: str | None = None,
    tls: ssl.SSLContext | None = None,
    cancel_on_disconnect: bool = False,
) -> web.AppRunner:
    """Serve ``app`` at ``host:port``; the caller cleans the runner up. Raises ConfigError if it cannot be had.

    ``cancel_on_disconnect`` cancels a request's handler when its client goes away, for answers that cost work.
    """
    host, port = split_address(address)
    if not is_loopback(host) and (token is None or tls is None):
        raise ConfigError(f"listen: {address} can be reached from other machines: set token_file, tls_cert and tls_key")
    quick = app.get(QUICK)
    make = partial(Runner, quick=quick) if quick is not None and is_tried() else refusals.Runner
    runner = make(
        app,
        access_log=None,
        handle_signals=False,
        shutdown_timeout=2.0,
        handler_cancellation=cancel_on_disconnect,
        keepalive_timeout=IDLE_S,
        max_line_size=MAX_LINE_BYTES,
        max_field_size=MAX_LINE_BYTES,
        max_headers=MAX_HEADERS,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=tls, reuse_address=True).start()
    except OSError as error:
        await runner.cleanup()
        raise ConfigError(
            f"listen: {address} cannot be used: {error.strerror or error}; stop what uses it or choose another port"
        ) from error
    return runner
