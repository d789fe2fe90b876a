"""``POST /api/v1/diag``: run active checks and tell of them as they go, as JSON Lines. Who goes away ends the run."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
from aiohttp import web

from agent.diag.diag import Diag
from vocab.diag import AnyTold, DiagRequest
from wire.server import decode

LOOK_S = 1.0  # how soon it is noticed that nobody listens any more


def route(diag: Diag) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """The handler; what is refused is answered as an error before the stream begins."""

    async def run(request: web.Request) -> web.StreamResponse:
        wish = decode(await request.read(), DiagRequest)
        answer = web.StreamResponse(headers={"Content-Type": "application/x-ndjson", "Cache-Control": "no-store"})

        async def tell(told: AnyTold) -> None:
            if not answer.prepared:
                await answer.prepare(request)
            await answer.write(msgspec.json.encode(told) + b"\n")

        await _while_heard(request, asyncio.ensure_future(diag.run(wish, tell)))
        with suppress(ConnectionResetError):  # who has read the last line may go before the end
            await answer.write_eof()
        return answer

    return run


async def _while_heard(request: web.Request, run: asyncio.Future[None]) -> None:
    try:
        while not run.done():
            await asyncio.wait({run}, timeout=LOOK_S)
            if request.transport is None or request.transport.is_closing():
                break
        if run.done():
            run.result()
    finally:
        if not run.done():
            run.cancel()
            with suppress(asyncio.CancelledError):
                await run
