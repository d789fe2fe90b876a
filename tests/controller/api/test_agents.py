"""What gateways tell of nodes: silent ones are taken down, and one gateway with the controller makes a witness pair."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from controller.config import DeploymentConfig
from controller.deciding.mind import real_core
from tests.controller.house import NODE, House, batch, house
from tests.controller.node import Node
from vocab.clock import VirtualClock
from vocab.errors import InputError

CHAT = (DeploymentConfig(name="chat", model="smollm2"),)


async def silent(home: House, clock: VirtualClock) -> None:
    """A node that reported, and has been silent for a minute; another one that reports."""
    await Node(home).send()
    clock.advance(60.0)
    other = replace(Node(home).facts, node="n2", gpus=())
    await home.post("agent/batch", batch(node="n2", facts=other))
    assert {node["node"]: node["state"] for node in await home.get("nodes")} == {NODE: "unknown", "n2": "live"}


async def test_what_a_gateway_says_of_a_silent_node_is_taken_down(tmp_path: Path) -> None:
    clock = VirtualClock(1_796_000_000.0)
    async with house(tmp_path, clock=clock, make_core=real_core, deployments=CHAT) as home:
        await silent(home, clock)
        told = await home.post("gateway/reach", {"by": "g1", "nodes": {NODE: False, "n2": False, "nobody": False}})
        assert told == {"noted": [NODE]}
        assert {node["node"] for node in await home.get("nodes")} == {NODE, "n2"}
        assert home.inside.mind.core._fleet.node(NODE).unreached_by() == ["gateway:g1"]
        await home.post("gateway/reach", {"by": "g1", "nodes": {NODE: True}})
        assert home.inside.mind.core._fleet.node(NODE).is_reached()


async def test_a_gateway_on_the_silent_node_itself_is_no_witness(tmp_path: Path) -> None:
    clock = VirtualClock(1_796_000_000.0)
    async with house(tmp_path, clock=clock, make_core=real_core, deployments=CHAT) as home:
        await silent(home, clock)
        await home.post("gateway/reach", {"by": NODE, "nodes": {NODE: False}})
        assert home.inside.mind.core._fleet.node(NODE).unreached_by() == []


async def test_a_report_without_its_observer_is_refused(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        with pytest.raises(InputError, match="by"):
            await home.post("gateway/reach", {"by": "", "nodes": {}})
