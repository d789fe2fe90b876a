"""Where a replica starts: on GPUs that take work, all on one node, spread over nodes, then dense."""

from collections import Counter

import pytest

from controller.core.fleet.stimuli import Deployment
from controller.core.placement.placement import choose
from tests.controller.core.conftest import MakeWorld
from tests.sim.world import World
from vocab.lines import Target

IDLE = Deployment(name="idle", replicas=0)
CHAT = Deployment(name="chat")


def place(world: World, deployment: Deployment, *but: str) -> Target | None:
    return choose(world.core._fleet, deployment, "chat-1", world.now, frozenset(but))


def declare(world: World, *deployments: Deployment) -> None:
    world.deployments += deployments
    world._declare()
    world.run(20)


def nodes_of(world: World, deployment: str) -> Counter[str]:
    return Counter(replica.node for replica in world.core.view().replicas if replica.deployment == deployment)


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    """Three nodes of four GPUs, empty."""
    return make_world(IDLE, nodes=3, gpus=4)


def test_replicas_of_one_deployment_are_spread_over_nodes(world: World) -> None:
    declare(world, Deployment(name="chat", replicas=3))
    assert nodes_of(world, "chat") == {"n1": 1, "n2": 1, "n3": 1}


def test_of_two_nodes_without_it_the_fuller_one_is_taken(world: World) -> None:
    declare(world, Deployment(name="other", gpus_per_replica=2))
    (full,) = nodes_of(world, "other")
    target = place(world, CHAT)
    assert target is not None
    assert target.node == full, "whole nodes stay free for what needs them"


def test_members_are_on_one_node_in_the_order_of_their_index(world: World) -> None:
    target = place(world, Deployment(name="chat", gpus_per_replica=3))
    assert target is not None
    assert target.gpus == tuple(f"GPU-{target.node}-{index}" for index in range(3))
    assert place(world, Deployment(name="chat", gpus_per_replica=5)) is None


def test_a_pinned_deployment_takes_its_own_gpus_alone(world: World) -> None:
    pinned = Deployment(name="chat", gpus=("GPU-n2-3",))
    assert place(world, pinned) == Target(node="n2", gpus=("GPU-n2-3",))
    world.ask("hold", gpu="GPU-n2-3", reason="mine")
    assert place(world, pinned) is None


def test_a_node_that_is_left_out_is_not_chosen(world: World) -> None:
    assert place(world, CHAT, "n1", "n2", "n3") is None
    target = place(world, CHAT, "n1", "n2")
    assert target is not None
    assert target.node == "n3"


@pytest.mark.parametrize("what", ["hold", "lost", "failed", "silent", "unreadable", "booting", "blocked"])
def test_what_takes_no_work_is_passed_over(make_world: MakeWorld, what: str) -> None:
    world = make_world(IDLE, gpus=1)
    node = world.nodes["n1"]
    assert place(world, CHAT) is not None
    if what == "hold":
        world.ask("hold", node="n1", reason="a new cable")
    elif what == "lost":
        node.hit(node.gpus[0], "gpu_lost", world.now)
    elif what == "failed":
        node.hit(node.gpus[0], "xid:95", world.now)
    elif what == "silent":
        node.silent = True
        world.run(30)
    elif what == "unreadable":
        node.blind.add(node.gpus[0])
        world.run(90)
    elif what == "booting":
        node.booting = True
    else:
        node.hit(node.gpus[0], "unknown_consumer", world.now)
    world.run(4)
    assert place(world, CHAT) is None


def test_a_gpu_on_which_it_failed_lately_is_the_last_to_be_tried(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat"), gpus=2)
    node = world.nodes["n1"]
    first = next(iter(world.core.view().replicas))
    node.crash(first.replica)
    world.run(20)
    second = next(iter(world.core.view().replicas))
    assert set(second.gpus) == set(node.gpus) - set(first.gpus)


def test_the_same_question_has_the_same_answer(world: World) -> None:
    assert {place(world, CHAT) for _ in range(5)} == {place(world, CHAT)}
