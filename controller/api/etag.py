"""Strong ETags: the hash of an answer's bytes. An answer that the caller has is not sent again; a change that is bound
to what the caller saw is refused once that is another."""

from hashlib import blake2b

from aiohttp import web


def _tag(response: web.Response) -> str:
    body = response.body if isinstance(response.body, bytes) else b""
    return f'"{blake2b(body, digest_size=16).hexdigest()}"'


def _given(header: str) -> set[str]:
    return {tag.strip().removeprefix("W/") for tag in header.split(",")}


def tagged(request: web.Request, response: web.Response) -> web.Response:
    """The answer with its tag, or 304 if ``If-None-Match`` names that."""
    tag = _tag(response)
    kept = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if _given(request.headers.get("If-None-Match", "")) & {tag, "*"}:
        return web.Response(status=304, headers=kept)
    response.headers.update(kept)
    return response


def must_match(request: web.Request, now: web.Response) -> None:
    """Let a change pass if ``If-Match`` names what the thing is now. Raises HTTPPreconditionFailed."""
    if not _given(request.headers["If-Match"]) & {_tag(now), "*"}:
        raise web.HTTPPreconditionFailed(reason="it has changed since you looked (If-Match names another state of it)")
