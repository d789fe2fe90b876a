"""Restarts in place: when they are due, what they wait for, and when they would not help."""

import pytest

from controller.core.fleet.stimuli import Deployment
from controller.core.replicas.restart import BACKOFF_S, GRACE_S, TRIES, UNWITNESSED_S, WITNESSED_S
from tests.controller.core.conftest import MakeWorld
from tests.sim.node import Node
from tests.sim.world import World
from vocab.events import Event
from vocab.lines import ActionLine
from vocab.states import ActionKind, ActionState, Level

RESTART = ActionKind.RESTART_REPLICA
CHAT = Deployment(name="chat", replicas=2, min_ready=1)
BEAT_S = 2.0  # between two reports of a node


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    return make_world(CHAT)


@pytest.fixture
def replica(world: World, node: Node) -> str:
    """The replica on the first GPU."""
    return world.replica_on(node.gpus[0]) or ""


def stall(world: World, node: Node, replica: str, **fields: object) -> Event:
    """It stands still from now on, and its agent says so."""
    node.stalled.add(replica)
    return node.complain(replica, "replica_stalled", world.now, still_since=world.now, **fields)


def restarts(world: World, *states: ActionState) -> list[ActionLine]:
    return [line for line in world.actions(RESTART) if not states or line.state in states]


def test_what_stands_still_alone_is_restarted_late_and_what_a_witness_speaks_against_sooner(
    world: World, node: Node, replica: str
) -> None:
    other = world.replica_on(node.gpus[1]) or ""
    began = world.now
    first = stall(world, node, replica, suspects=[{"gpu": node.gpus[0], "confidence": "low"}])
    stall(world, node, other)
    world.run(WITNESSED_S + 10)
    node.content(first, world.now)
    world.run(UNWITNESSED_S)
    ordered = {line.subject.replica: line.at - began for line in world.ordered(RESTART)}
    assert WITNESSED_S <= ordered[replica] <= WITNESSED_S + 2 * BEAT_S
    assert UNWITNESSED_S <= ordered[other] <= UNWITNESSED_S + 2 * BEAT_S


def test_it_serves_again_on_its_own_gpus_and_nothing_else_starts(world: World, node: Node, replica: str) -> None:
    event = stall(world, node, replica)
    world.run(UNWITNESSED_S + BEAT_S)
    node.content(event, world.now)
    world.run(20)
    told = [line.state for line in restarts(world)]
    assert list(dict.fromkeys(told)) == [ActionState.ORDERED, ActionState.RUNNING, ActionState.DONE]
    assert world.replica_on(node.gpus[0]) == replica
    assert len(world.ordered(ActionKind.START_REPLICA)) == 2


def test_what_steps_again_in_time_is_not_restarted(world: World, node: Node, replica: str) -> None:
    event = stall(world, node, replica)
    world.run(WITNESSED_S)
    node.stalled.clear()
    node.content(event, world.now)
    world.run(UNWITNESSED_S)
    assert restarts(world) == []


def test_members_that_wait_for_one_another_get_their_grace(world: World, node: Node, replica: str) -> None:
    began = world.now
    node.complain(replica, "collective_timeout", world.now)
    world.run(GRACE_S + 10)
    (order,) = world.ordered(RESTART)
    assert GRACE_S <= order.at - began <= GRACE_S + 2 * BEAT_S


def test_of_one_deployment_one_living_process_is_restarted_at_a_time(world: World, node: Node, replica: str) -> None:
    other = world.replica_on(node.gpus[1]) or ""
    for each in (replica, other):
        node.complain(each, "collective_timeout", world.now)
    world.run(GRACE_S + 2 * BEAT_S)
    assert len(world.ordered(RESTART)) == 1
    (waits,) = restarts(world, ActionState.WAITING)
    assert waits.why == "another one comes first"
    assert waits.budget is not None
    assert waits.budget.of == "restarts of chat at one time"


def test_one_that_serves_from_the_wrong_gpu_waits_until_it_can_be_spared(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=2, min_ready=2))
    node = world.nodes["n1"]
    node.complain(world.replica_on(node.gpus[0]) or "", "replica_wrong_gpu", world.now)
    world.run(10)
    assert world.ordered(RESTART) == []
    (waits,) = restarts(world, ActionState.WAITING)
    assert waits.budget is not None
    assert (waits.budget.used, waits.budget.limit) == (1, 2)


@pytest.mark.parametrize("level", [Level.OBSERVE, Level.FENCE, Level.CORDON])
def test_below_repair_it_is_only_said(make_world: MakeWorld, level: Level) -> None:
    world = make_world(CHAT, level=level)
    node = world.nodes["n1"]
    stall(world, node, world.replica_on(node.gpus[0]) or "")
    world.run(UNWITNESSED_S + 10)
    assert {line.state for line in restarts(world)} == {ActionState.WOULD}


def test_on_a_gpu_that_is_held_for_a_fault_it_is_moved_instead(world: World, node: Node, replica: str) -> None:
    stall(world, node, replica)
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(UNWITNESSED_S + 30)
    assert restarts(world) == []
    assert world.replica_on(node.gpus[0]) is None


def test_more_than_three_restarts_in_ten_minutes_wait(world: World, node: Node, replica: str) -> None:
    for _ in range(TRIES + 1):
        event = node.complain(replica, "collective_timeout", world.now)
        world.run(GRACE_S + BACKOFF_S)
        node.content(event, world.now)
        world.run(20)
    assert len(world.ordered(RESTART)) == TRIES
    waits = restarts(world, ActionState.WAITING)[-1]
    assert waits.why == "it was restarted often enough"
    assert waits.budget is not None
    assert waits.budget.of == "restarts of it in 600 s"
