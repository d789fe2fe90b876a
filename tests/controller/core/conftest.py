"""The fleet of the drill: one node of 8 GPUs with `chat` on two and `pair` over two of them."""

from collections.abc import Callable

import pytest

from controller.core.fleet.settings import Settings
from controller.core.fleet.stimuli import Deployment
from tests.sim.node import Node
from tests.sim.world import World
from vocab.states import Level

CHAT = Deployment(name="chat", replicas=2, min_ready=1)
PAIR = Deployment(name="pair", replicas=1, gpus_per_replica=2, min_ready=1)

MakeWorld = Callable[..., World]


@pytest.fixture
def make_world() -> MakeWorld:
    """A world that has run until its replicas are ready."""

    def make(
        *deployments: Deployment,
        nodes: int = 1,
        gpus: int = 8,
        level: Level = Level.REPAIR,
        settings: Settings | None = None,
    ) -> World:
        world = World([Node(f"n{n + 1}", gpus, level) for n in range(nodes)], deployments or (CHAT, PAIR), settings)
        world.run(12)
        return world

    return make


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    """The fleet of the drill, serving."""
    return make_world()


@pytest.fixture
def node(world: World) -> Node:
    """Its only node."""
    return world.nodes["n1"]
