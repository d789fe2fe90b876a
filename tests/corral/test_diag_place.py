"""Which agent `corral diag` asks: a controller and an agent that answer as real ones do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from corral.ask import AGENT
from corral.diag.place import Place, place
from tests.agent.test_agent import free_port
from vocab.errors import InputError
from wire.server import reply

ONE, TWO, FAR = "GPU-aaaa", "GPU-bbbb", "GPU-cccc"
NODES = {"n1": (ONE, TWO), "n2": (FAR,)}


@asynccontextmanager
async def answering(nodes: dict[str, tuple[str, ...]]) -> AsyncIterator[str]:
    """A controller of these nodes, and the agent of the first."""

    async def answer(request: web.Request) -> web.Response:
        gpus = {node: [{"uuid": uuid, "index": n} for n, uuid in enumerate(uuids)] for node, uuids in nodes.items()}
        bodies: dict[str, Any] = {
            "/api/v1/fleet": {"nodes": [{"node": node, "gpus": there} for node, there in gpus.items()]},
            "/api/v1/nodes": [{"node": node, "address": f"http://{node}:7410"} for node in nodes],
            "/api/v1/node": {"gpus": [{"gpu": uuid, "index": n} for n, uuid in enumerate(next(iter(nodes.values())))]},
        }
        return reply(bodies[request.path])

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


async def found(monkeypatch: pytest.MonkeyPatch, url: str, address: str | None, *names: str) -> Place:
    monkeypatch.setenv("CORRAL_URL", url)
    return await asyncio.to_thread(place, address, names)


async def test_the_controller_knows_whose_gpu_it_is(monkeypatch):
    async with answering(NODES) as url:
        assert await found(monkeypatch, url, None, "cccc") == Place("http://n2:7410", (FAR,))
        assert await found(monkeypatch, url, None, "n1/1", ONE) == Place("http://n1:7410", (TWO, ONE))


async def test_gpus_of_two_nodes_are_not_checked_in_one_run(monkeypatch):
    async with answering(NODES) as url:
        with pytest.raises(InputError, match="several nodes"):
            await found(monkeypatch, url, None, ONE, FAR)


async def test_without_names_the_only_node_is_meant_or_this_machine(monkeypatch):
    async with answering({"n1": (ONE,)}) as url:
        assert await found(monkeypatch, url, None) == Place("http://n1:7410", ())
    async with answering(NODES) as url:
        assert await found(monkeypatch, url, None) == Place(AGENT, ())
    assert await found(monkeypatch, "http://127.0.0.1:9", None) == Place(AGENT, ())


async def test_an_agent_that_is_named_knows_its_own_gpus(monkeypatch):
    async with answering(NODES) as url:
        assert await found(monkeypatch, "http://127.0.0.1:9", url, "1", "aaaa") == Place(url, (TWO, ONE))
        with pytest.raises(InputError, match="names 2 GPUs"):
            await found(monkeypatch, "http://127.0.0.1:9", url, "GPU")
