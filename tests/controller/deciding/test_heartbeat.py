"""Heartbeats: what tells nothing new is answered at once, what tells something once that is on disk."""

import asyncio
from pathlib import Path

import msgspec

from controller.deciding.mind import real_core
from controller.store import read
from tests.controller.house import NODE, batch, house
from vocab.clock import VirtualClock


async def test_heartbeat_that_tells_nothing_new_waits_for_no_turn(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch())
        before = await home.get("fleet")
        home.inside.thinking.cancel()  # nobody takes a turn any more
        ack = await home.post("agent/batch", msgspec.structs.replace(batch(), facts=None))
        assert ack["position"] == 0
        assert ack["want_facts"] is False
        assert (await home.get("fleet"))["seq"] == before["seq"]


async def test_heartbeat_that_brings_a_node_back_is_answered_once_that_is_on_disk(tmp_path: Path) -> None:
    clock = VirtualClock(1_796_000_000.0)
    async with house(tmp_path, clock=clock, make_core=real_core) as home:
        await home.post("agent/batch", batch())
        clock.advance(3600.0)
        async with asyncio.timeout(60):
            while (await home.get("fleet"))["nodes"][0]["state"] != "unknown":
                await home.post("pause", {"reason": "time passes at the next turn"})
        await home.post("agent/batch", msgspec.structs.replace(batch(), facts=None))
        async with home.inside.store.reading() as connection:
            states = await read.latest(connection, "state")
        assert [change.line.to for change in states if change.line.subject.node == NODE] == ["live"]
