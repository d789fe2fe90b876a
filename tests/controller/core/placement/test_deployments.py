"""As many replicas as are wanted: what counts, what is too many, and who is none of our business."""

from controller.core.fleet.stimuli import Deployment
from tests.controller.core.conftest import MakeWorld
from tests.sim.world import World
from vocab.states import ActionKind, ActionState

START, DRAIN = ActionKind.START_REPLICA, ActionKind.DRAIN


def declare(world: World, deployment: Deployment) -> None:
    world.deployments[0] = deployment
    world._declare()
    world.run(30)


def on(world: World) -> dict[str, str]:
    """GPUs by the replica that runs there."""
    return {gpu: replica.replica for replica in world.core.view().replicas for gpu in replica.gpus}


def test_more_and_fewer_follow_what_is_declared(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=1))
    declare(world, Deployment(name="chat", replicas=4))
    assert len(on(world)) == 4
    declare(world, Deployment(name="chat", replicas=2))
    assert len(on(world)) == 2
    assert all(line.rule == "deployment/surplus" for line in world.ordered(DRAIN))


def test_of_too_many_what_stands_on_a_held_gpu_goes_first(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=3))
    node = world.nodes["n1"]
    world.ask("hold", gpu=node.gpus[0], reason="a look")
    declare(world, Deployment(name="chat", replicas=2))
    assert set(on(world)) == {node.gpus[1], node.gpus[2]}


def test_then_what_stands_still_and_then_the_youngest(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=3))
    node = world.nodes["n1"]
    node.stalled.add(on(world)[node.gpus[1]])
    world.run(2)
    declare(world, Deployment(name="chat", replicas=2))
    assert set(on(world)) == {node.gpus[0], node.gpus[2]}
    declare(world, Deployment(name="chat", replicas=1))
    assert set(on(world)) == {node.gpus[0]}


def test_what_somebody_else_manages_is_neither_started_nor_drained(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=2, managed_by="kubernetes"))
    assert world.actions() == []
    (chat,) = world.core.view().deployments
    assert chat.short_because == "kubernetes has started no more"


def test_a_replica_that_a_person_drains_is_replaced_first(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=1))
    node = world.nodes["n1"]
    old = on(world)[node.gpus[0]]
    world.ask("drain", replica=old, reason="a new image")
    world.run(30)
    assert old not in on(world).values()
    assert len(on(world)) == 1
    done = next(line.at for line in world.actions(START)[2:] if line.state is ActionState.DONE)
    assert world.ordered(DRAIN)[0].at >= done


def test_a_surplus_that_waits_for_the_floor_is_not_drained_while_automation_is_paused(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=3))
    node = world.nodes["n1"]
    world.ask("hold", gpu=node.gpus[0], reason="a look")
    others = {on(world)[gpu] for gpu in node.gpus[1:3]}
    node.stalled |= others
    world.run(2)
    declare(world, Deployment(name="chat", replicas=2, min_ready=1))
    world.ask("pause", reason="a look")
    node.stalled -= others
    world.run(30)
    assert world.ordered(DRAIN) == []
    world.ask("resume", reason="done")
    world.run(30)
    assert set(on(world)) == {node.gpus[1], node.gpus[2]}
