"""What an answer of a replica's doors says of it."""

import asyncio

import pytest
from aiohttp import web

from engine.gateway.board import Board
from engine.gateway.probes import Probes, of_health
from engine.gateway.table import Listed, Standing
from vocab.clock import SystemClock


@pytest.mark.parametrize(
    ("status", "changes", "standing"),
    [
        (200, {}, Standing.READY),
        (200, {"admitting": False}, Standing.FENCED),
        (200, {"state": "draining", "admitting": False}, Standing.DRAINING),
        (503, {}, Standing.UNWELL),
    ],
)
def test_an_engine_without_a_ready_door_is_known_by_its_health_and_its_agents_word(status, changes, standing) -> None:
    listed = Listed(**({"replica": "r1", "deployment": "chat", "state": "ready"} | changes))
    assert of_health(status, listed) is standing


async def test_a_vllm_is_asked_at_its_health() -> None:
    async def well(_: web.Request) -> web.Response:
        return web.Response()

    app = web.Application()
    app.router.add_get("/health", well)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    board = Board(SystemClock())
    board.list([Listed(replica="r1", deployment="chat", url=f"http://127.0.0.1:{runner.addresses[0][1]}")])
    probing = asyncio.ensure_future(Probes(board).run())
    try:
        async with asyncio.timeout(60):
            while board.standing("r1") is not Standing.READY:
                await asyncio.sleep(0.01)
    finally:
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)
        await runner.cleanup()
