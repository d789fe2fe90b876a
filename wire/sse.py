"""Server-sent events: how the controller's changes reach pages, gateways and commands as they happen."""

from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web


async def open_stream(request: web.Request) -> web.StreamResponse:
    """Begin a stream of events as the answer to ``request``."""
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )
    await response.prepare(request)
    return response


async def send(response: web.StreamResponse, data: bytes, *, event: str = "message", id: str | None = None) -> None:  # noqa: A002 - SSE's own word
    """One event; ``data`` must hold no newline (JSON does not)."""
    head = f"id: {id}\n" if id is not None else ""
    await response.write(f"{head}event: {event}\n".encode() + b"data: " + data + b"\n\n")


async def read_stream(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, str, bytes]]:
    """The (id, event, data) of each event of a stream, until the other side ends it."""
    ident, event, data = "", "message", b""
    async for raw in response.content:
        line = raw.rstrip(b"\r\n")
        if not line:
            if data:
                yield ident, event, data
            event, data = "message", b""
            continue
        name, _, value = line.partition(b": ")
        if name == b"id":
            ident = value.decode()
        elif name == b"event":
            event = value.decode()
        elif name == b"data":
            data += value
