"""A place where every replica dies before it was ready takes no more; one that dies everywhere has itself to blame."""

import pytest

from controller.core.faults.black_hole import CODE, WINDOW_S
from controller.core.fleet.settings import Limits, Settings
from controller.core.fleet.stimuli import Deployment
from tests.controller.core.conftest import MakeWorld
from tests.sim.node import Node
from tests.sim.world import World
from vocab.events import Event
from vocab.lines import EventLine, HoldLine, Subject
from vocab.states import ClearsOn

CHAT = Deployment(name="chat", replicas=1)


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    """Two nodes; ``chat`` serves on the first one."""
    return make_world(CHAT, nodes=2)


def fail(world: World, node: Node, replica: str, deployment: str, gpu: int = 7, *, ready: bool = False) -> None:
    """A replica died there before it was ready."""
    fields = {"deployment": deployment, "gpus": [node.gpus[gpu]], "was_ready": ready, "said": "CUDA error 999"}
    node.complain(replica, "replica_died", world.now, **fields)
    world.run(4)


def holes(world: World) -> list[Event]:
    return [line.event for line in world.lines if isinstance(line, EventLine) and line.event.code == CODE]


def test_three_replicas_of_two_deployments_that_died_on_a_node_close_it(world: World) -> None:
    node = world.nodes["n2"]
    for number, deployment in enumerate(("a", "a", "b")):
        fail(world, node, f"r{number}", deployment, gpu=number)
    (event,) = holes(world)
    assert (event.node, event.gpu, event.count) == ("n2", None, 3)
    assert event.fields == {"failed": ["r0", "r1", "r2"], "said": "CUDA error 999"}
    (hold,) = world.placed()
    assert (hold.subject, hold.clears_on) == (Subject(node="n2"), ClearsOn.PERSON)


def test_a_hole_is_closed_only_where_the_budget_has_room(make_world: MakeWorld) -> None:
    world = make_world(CHAT, nodes=3, settings=Settings(limits=Limits(cordons=1)))
    world.nodes["n1"].hit(world.nodes["n1"].gpus[0], "xid:79", world.now)
    world.run(4)
    for number, deployment in enumerate(("a", "a", "b")):
        fail(world, world.nodes["n2"], f"r{number}", deployment, gpu=number)
    assert [hold.rule for hold in world.placed()] == ["xid:79"]
    (would,) = [line for line in world.lines if isinstance(line, HoldLine) and line.op == "would_place"]
    assert (would.rule, would.budget is not None) == (CODE, True)


def test_what_runs_in_a_hole_is_left_alone_and_nothing_new_comes(world: World) -> None:
    node = world.nodes["n1"]
    for number, deployment in enumerate(("a", "a", "b")):
        fail(world, node, f"r{number}", deployment, gpu=5 + number)
    assert [hold.subject.node for hold in world.placed()] == ["n1"]
    world.deployments[0] = Deployment(name="chat", replicas=3)
    world._declare()
    world.run(30)
    assert sorted((replica.node, replica.state) for replica in world.core.view().replicas) == [
        ("n1", "ready"), ("n2", "ready"), ("n2", "ready"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "failures",
    [
        (("r0", "a"), ("r1", "b")),  # two are chance
        (("r0", "a"), ("r0", "a"), ("r0", "a"), ("r1", "b")),  # one that dies again and again is one
    ],
)
def test_fewer_than_three_replicas_are_no_hole(world: World, failures: tuple[tuple[str, str], ...]) -> None:
    for number, (replica, deployment) in enumerate(failures):
        fail(world, world.nodes["n2"], replica, deployment, gpu=number)
    assert holes(world) == []


def test_a_replica_that_was_ready_once_counts_for_nothing(world: World) -> None:
    for number, deployment in enumerate(("a", "a", "b")):
        fail(world, world.nodes["n2"], f"r{number}", deployment, gpu=number, ready=True)
    assert holes(world) == []


def test_failures_more_than_an_hour_apart_are_no_hole(world: World) -> None:
    for number, deployment in enumerate(("a", "a", "b")):
        fail(world, world.nodes["n2"], f"r{number}", deployment, gpu=number)
        world.run(WINDOW_S / 2)
    assert holes(world) == []


def test_a_deployment_that_dies_on_every_node_has_itself_to_blame(world: World) -> None:
    for number, name in enumerate(("n1", "n2", "n2", "n2")):
        fail(world, world.nodes[name], f"r{number}", "broken", gpu=7 - number)
    assert holes(world) == []


def test_one_deployment_that_serves_elsewhere_is_proof_enough(world: World) -> None:
    for number in range(3):
        fail(world, world.nodes["n2"], f"r{number}", "chat", gpu=number)
    assert [event.node for event in holes(world)] == ["n2"]


def test_a_replica_that_becomes_ready_there_begins_the_count_anew(world: World) -> None:
    node = world.nodes["n1"]
    fail(world, node, "r0", "a", gpu=6)
    fail(world, node, "r1", "b", gpu=7)
    world.nodes["n2"].silent = True  # the next one is placed here
    world.deployments.append(Deployment(name="late"))
    world._declare()
    world.run(20)
    assert {replica.node for replica in world.core.view().replicas if replica.state == "ready"} == {"n1"}
    fail(world, node, "r2", "b", gpu=5)
    assert holes(world) == []


def test_one_gpu_on_which_all_die_is_closed_alone_where_others_become_ready(world: World) -> None:
    node = world.nodes["n1"]
    for number in range(2):
        fail(world, node, f"r{number}", "a")
    world.nodes["n2"].silent = True
    world.deployments.append(Deployment(name="late"))
    world._declare()
    world.run(20)
    fail(world, node, "r2", "b")
    assert [(event.gpu, event.count) for event in holes(world)] == [(node.gpus[7], 3)]
    assert [hold.subject for hold in world.placed()] == [Subject(gpu=node.gpus[7])]
