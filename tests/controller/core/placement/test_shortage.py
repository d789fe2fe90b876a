"""A deployment says why it is short; what is lost or held takes no replica, and what is back fills up by itself."""

import pytest

from controller.core.fleet.settings import Limits, Settings
from controller.core.fleet.stimuli import Deployment
from tests.controller.core.conftest import MakeWorld
from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import ActionLine
from vocab.states import ActionKind, ActionState

START = ActionKind.START_REPLICA


def because(world: World, name: str = "chat") -> str | None:
    return next(each.short_because for each in world.core.view().deployments if each.name == name)


def waiting(world: World) -> list[ActionLine]:
    return [line for line in world.core.view().actions if line.state is ActionState.WAITING and line.of is START]


def break_all(world: World, gap_s: float) -> None:
    node = world.nodes["n1"]
    for gpu in node.gpus:
        node.hit(gpu, "xid:79", world.now, fence=True)
        world.run(gap_s)
    world.run(60)


def states(world: World) -> list[str]:
    return sorted(f"{replica.deployment} {replica.state}" for replica in world.core.view().replicas)


SERVING = ["chat ready", "chat ready", "pair ready"]


def test_who_has_all_replicas_has_nothing_to_say(world: World) -> None:
    assert because(world) is None


@pytest.mark.parametrize("gap_s", [0.5, 2, 5, 20])
def test_with_every_gpu_lost_nothing_starts_and_each_says_why(world: World, gap_s: float) -> None:
    break_all(world, gap_s)
    assert states(world) == []
    assert because(world) == "2 to start: no GPU is free: 8 lost"
    assert because(world, "pair") == "1 to start: no node has 2 GPUs free: 8 lost"
    assert len(waiting(world)) == 3


@pytest.mark.parametrize("gap_s", [0.5, 2, 5, 20])
def test_a_reboot_brings_a_fleet_that_was_lost_whole_back(world: World, gap_s: float) -> None:
    break_all(world, gap_s)
    node = world.nodes["n1"]
    for gpu in node.gpus:
        node.clear(gpu, world.now, by="reboot")
    node.reboot(world.now)
    node.desired = None
    world.restart()
    world.run(60)
    assert states(world) == SERVING
    assert because(world) is None


def test_what_a_person_calls_healthy_serves_again_once_it_answers(world: World, node: Node) -> None:
    break_all(world, 2)
    for gpu in node.gpus:
        world.ask("set_healthy", gpu=gpu, reason="a new riser")
    world.run(20)
    assert states(world) == [], "they are still gone from the bus"
    assert because(world) == "2 to start: no GPU is free: 8 unknown"
    node.lost.clear()
    world.run(20)
    assert states(world) == SERVING


def test_a_gpu_whose_last_reading_failed_takes_nothing_until_the_next_good_one(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="idle", replicas=0), gpus=1)
    node = world.nodes["n1"]
    node.lost.add(node.gpus[0])
    world.run(4)
    world.deployments.append(Deployment(name="chat"))
    world._declare()
    world.run(10)
    assert because(world) == "1 to start: no GPU is free: 1 unknown"
    node.lost.clear()
    world.run(10)
    assert states(world) == ["chat ready"]


def test_a_node_that_boots_takes_nothing_until_its_start_is_over(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="idle", replicas=0), gpus=1)
    node = world.nodes["n1"]
    node.booting = True
    world.run(2)
    world.deployments.append(Deployment(name="chat"))
    world._declare()
    world.run(10)
    assert because(world) == "1 to start: no GPU is free: 1 booting"
    node.booting = False
    world.run(10)
    assert states(world) == ["chat ready"]


def test_counts_say_what_each_gpu_is_busy_with(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=3), Deployment(name="pair", gpus_per_replica=2), gpus=4)
    node = world.nodes["n1"]
    assert because(world, "pair") == "1 to start: no node has 2 GPUs free: 3 occupied, 1 free"
    world.ask("hold", gpu=node.gpus[3], reason="mine")
    assert because(world, "pair") == "1 to start: no node has 2 GPUs free: 1 held, 3 occupied"


def test_a_deployment_that_no_node_can_hold_is_told_so(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", gpus_per_replica=4), gpus=2)
    assert because(world) == "1 to start: no node has 4 GPUs for it"
    world = make_world(Deployment(name="chat"), gpus=0)
    assert because(world) == "1 to start: no node has a GPU for it"


def test_what_starts_and_what_stands_still_is_counted(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=2))
    node = world.nodes["n1"]
    node.stalled.add(next(iter(node.processes)))
    world.run(2)
    assert because(world) == "1 stalled"


def test_a_start_says_anew_what_it_waits_for_when_that_changes(make_world: MakeWorld) -> None:
    settings = Settings(limits=Limits(starts=1, window_s=60.0))
    world = make_world(Deployment(name="chat"), gpus=1, settings=settings)
    node = world.nodes["n1"]
    node.crash(next(iter(node.processes)))
    world.run(4)
    assert [line.why for line in waiting(world)] == ["its last starts failed"]
    assert because(world) == "1 to start: its last starts failed"
    world.ask("hold", gpu=node.gpus[0], reason="mine")
    world.run(70)
    assert [line.why for line in waiting(world)] == ["no GPU is free: 1 held"]
    assert [line.budget for line in waiting(world)] == [None]
