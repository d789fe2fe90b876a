"""The red button reaches every agent that waits, and reaches it at once: the real door, the real long poll."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from controller.config import PoolConfig
from controller.deciding.mind import real_core
from tests.controller.house import House, batch, facts, house
from vocab.errors import Refused
from vocab.messages import Desired

NODES = [f"n{number}" for number in range(1, 41)]
WITHIN_S = 5.0  # what an SRE is promised; agents that are in their back-off come within this time, too


async def join(home: House, node: str) -> Desired:
    own = replace(facts(node), gpus=())
    await home.post("agent/batch", batch(node=node, session=node, facts=own, replicas=()))
    return await home.call("GET", "/api/v1/agent/desired", Desired, node=node, wait_s=0)


async def test_every_agent_is_told_of_a_pause_and_of_its_end_within_five_seconds(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core) as home:
        known = {node: await join(home, node) for node in NODES}
        for do, expected in (("pause", True), ("resume", False)):
            polls = [
                asyncio.create_task(
                    home.call(
                        "GET",
                        "/api/v1/agent/desired",
                        Desired,
                        timeout_s=30.0,
                        node=node,
                        generation=desired.generation,
                        wait_s=25,
                    )
                )
                for node, desired in known.items()
            ]
            while home.inside.dispatch.waiting < len(NODES):
                await asyncio.sleep(0.01)
            await home.post(do, {"reason": "stop"})
            async with asyncio.timeout(WITHIN_S):
                known = {desired.node: desired for desired in await asyncio.gather(*polls)}
            assert {desired.paused for desired in known.values()} == {expected}


async def test_a_pool_is_paused_alone_and_shown_counted_and_audited(tmp_path: Path) -> None:
    pools = {"blue": PoolConfig(nodes=("n1",)), "green": PoolConfig(nodes=("n2",))}
    async with house(tmp_path, make_core=real_core, pools=pools) as home:
        for node in ("n1", "n2"):
            await join(home, node)
        await home.post("pause", {"reason": "new driver", "pool": "green"})
        wanted = [await home.call("GET", "/api/v1/agent/desired", Desired, node=n, wait_s=0) for n in ("n1", "n2")]
        assert [desired.paused for desired in wanted] == [False, True]
        fleet = await home.get("fleet")
        assert fleet["paused"] is False
        assert [(each["scope"], each["name"]) for each in fleet["pauses"]] == [("pool", "green")]
        _, metrics, _ = await home.raw("GET", "/metrics")
        assert 'corral_pauses{scope="pool"} 1.0' in metrics
        assert 'corral_pauses{scope="fleet"} 0.0' in metrics
        assert (await home.get("audit"))[-1]["subject"] == "pool:green"
        with pytest.raises(Refused, match="known: blue, green"):
            await home.post("pause", {"reason": "typo", "pool": "gren"})
