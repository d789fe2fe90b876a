"""Heartbeats that are answered where they are read: let in as any other request, and heard once."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from controller.deciding.mind import real_core
from controller.store import read
from tests.controller.api.test_tokens import guarded, make
from tests.controller.house import NODE, House, batch, house
from vocab.clock import VirtualClock
from vocab.messages import Batch

BEAT = msgspec.structs.replace(batch(), facts=None)
JSON = {"Content-Type": "application/json"}


async def beat(home: House, said: Batch = BEAT, **headers: str) -> tuple[int, bool]:
    """The status, and whether it was answered at once: aiohttp's own answers name the server."""
    sent = {**JSON, **headers}
    body = msgspec.json.encode(said)
    status, _, answered = await home.raw("POST", "/api/v1/agent/batch", data=body, headers=sent)
    return status, "Server" not in answered


async def test_a_heartbeat_is_answered_at_once_and_as_any_report(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch())
        whole: Any = await home.post("agent/batch", batch())
        assert await beat(home) == (200, True)
        assert await home.post("agent/batch", BEAT) == whole
        count = 'corral_ingest_batches_total{outcome="stored"} 4.0'
        assert count in (await home.raw("GET", "/metrics"))[1]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Origin": "http://evil.example"}, 403),
        ({"Host": "evil.example"}, 403),
    ],
)
async def test_a_foreign_page_sends_no_heartbeat(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch())
        assert await beat(home, **headers) == (status, False)


async def test_a_heartbeat_needs_the_token_of_its_node(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        await home.post("agent/batch", batch())
        mine = await make(home, "node", NODE, node=NODE)
        anothers = await make(home, "node", "n2", node="n2")
        viewer = await make(home, "viewer", "looks")
        assert await beat(home, Authorization=f"Bearer {mine}") == (200, True)
        assert await beat(home, Authorization=f"Bearer {anothers}") == (403, False)
        assert await beat(home, Authorization=f"Bearer {viewer}") == (403, False)
        assert await beat(home, Authorization="Bearer none") == (401, False)


async def test_heartbeats_count_as_requests(tmp_path: Path) -> None:
    async with guarded(tmp_path, clock=VirtualClock(1_796_000_000.0), requests_per_s=1.0) as home:
        await home.post("agent/batch", batch())
        secret = await make(home, "node", NODE, node=NODE)
        seen = {await beat(home, Authorization=f"Bearer {secret}") for _ in range(300)}
        assert seen == {(200, True), (429, False)}


async def test_a_heartbeat_that_stirs_something_is_heard_once_and_waits_until_that_is_on_disk(tmp_path: Path) -> None:
    clock = VirtualClock(1_796_000_000.0)
    async with house(tmp_path, clock=clock, make_core=real_core) as home:
        await home.post("agent/batch", batch())
        clock.advance(3600.0)
        async with asyncio.timeout(60):
            while (await home.get("fleet"))["nodes"][0]["state"] != "unknown":
                await home.post("pause", {"reason": "time passes at the next turn"})
        assert await beat(home) == (200, False)
        async with home.inside.store.reading() as connection:
            states = await read.latest(connection, "state")
        assert [change.line.to for change in states if change.line.subject.node == NODE] == ["live"]
        assert (await home.get("fleet"))["nodes"][0]["state"] == "live"
        assert len(home.inside.mind.core._fleet.nodes[NODE].gaps) == 1
