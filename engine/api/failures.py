"""Every failure in the form that OpenAI's clients know: ``{"error": {"message", "type", "param", "code"}}``."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web

from engine.api.gate import Unavailable
from engine.api.requests import BadRequest
from vocab.errors import InputError
from vocab.problems import MEDIA_TYPE, Problem
from wire.server import reply

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

INVALID = "invalid_request_error"
_TYPES = {401: "authentication_error", 403: "permission_error"}  # the others by their hundred


def error_body(message: str, kind: str, *, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """One failure as OpenAI's clients read it."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def failure(message: str, kind: str, status: int, *, param: str | None = None, code: str | None = None,
            headers: dict[str, str] | None = None) -> web.Response:  # fmt: skip
    """One failure as an answer."""
    return reply(error_body(message, kind, param=param, code=code), status, headers)


@web.middleware
async def requests_of_others(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Innermost: what is wrong with a request, or keeps it from being answered here and now."""
    try:
        return await handler(request)
    except BadRequest as error:
        return failure(str(error), INVALID, error.status, param=error.param, code=error.code)
    except InputError as error:
        return failure(str(error), INVALID, 400)
    except Unavailable as error:
        headers = {"Retry-After": str(error.retry_after_s)}
        return failure(str(error), "unavailable", 503, code=error.code, headers=headers)


@web.middleware
async def whatever_else(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Outermost: unknown routes, wrong methods, bodies that are too large, missing tokens, our own faults."""
    response = await handler(request)
    if not isinstance(response, web.Response) or response.content_type != MEDIA_TYPE:
        return response
    assert isinstance(response.body, bytes)
    problem = msgspec.json.decode(response.body, type=Problem)
    status = response.status
    kind = _TYPES.get(status) or (INVALID if status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error")
    kept = {name: response.headers[name] for name in ("Allow", "Retry-After", "WWW-Authenticate")
            if name in response.headers}  # fmt: skip
    code = HTTPStatus(status).phrase.lower().replace(" ", "_")
    return failure(problem.detail or problem.title, kind, status, code=code, headers=kept)
