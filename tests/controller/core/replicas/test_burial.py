"""Records of replicas of which nothing runs end, and others start in their place; what runs is left alone."""

from msgspec.structs import replace

from controller.core.fleet.stimuli import Declared, Deployment
from controller.core.replicas.burial import SHUT_OUT
from tests.controller.core.conftest import MakeWorld
from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import ActionLine
from vocab.states import ActionKind, ActionState

START, DRAIN, STOP = ActionKind.START_REPLICA, ActionKind.DRAIN, ActionKind.STOP_REPLICA
CHAT = Deployment(name="chat", replicas=2, min_ready=1)


def reopen(world: World, seconds: float = 30) -> None:
    """The house is closed and opened again: no process is left, what is on disk is."""
    for node in world.nodes.values():
        node.reboot(world.now)
        node.desired = None
    world.restart()
    world.run(seconds)


def where(world: World) -> dict[str, str]:
    """GPUs by their replica's state."""
    return {gpu: replica.state for replica in world.core.view().replicas for gpu in replica.gpus}


def shut_out(world: World) -> list[ActionLine]:
    return [line for line in world.ordered(STOP) if line.rule == SHUT_OUT]


def test_what_runs_under_a_persons_hold_serves_on_and_counts(world: World, node: Node) -> None:
    world.ask("hold", gpu=node.gpus[0], reason="a look")
    world.run(60)
    assert where(world)[node.gpus[0]] == "ready"
    assert len(world.ordered(START)) == 3
    assert world.ordered(STOP) == world.ordered(DRAIN) == []


def test_what_must_start_anew_on_a_held_gpu_starts_elsewhere(world: World, node: Node) -> None:
    old = world.replica_on(node.gpus[0])
    world.ask("hold", gpu=node.gpus[0], reason="a look")
    world.run(4)
    reopen(world)
    assert node.gpus[0] not in where(world)
    assert sorted(where(world).values()) == ["ready"] * 4
    assert [(line.subject.replica, line.why) for line in shut_out(world)] == [
        (old, "it does not run, and cannot start where operator holds: a look (ada)")
    ]
    assert [line.state for line in world.actions(STOP)] == [ActionState.ORDERED, ActionState.DONE]
    assert [hold.owner for hold in world.core.view().holds] == ["operator"]


def test_a_held_node_starts_nothing_anew(make_world: MakeWorld) -> None:
    world = make_world(CHAT, nodes=2)
    world.ask("hold", node="n1", reason="a new cable")
    world.run(4)
    assert {replica.node for replica in world.core.view().replicas} == {"n1"}, "what runs is left alone"
    reopen(world)
    assert {(replica.node, replica.state) for replica in world.core.view().replicas} == {("n2", "ready")}


def test_a_start_that_a_hold_overtakes_is_made_elsewhere(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="idle", replicas=0))
    node = world.nodes["n1"]
    world.deployments.append(CHAT)
    world._declare()
    target = world.ordered(START)[0].target
    assert target is not None
    world.ask("hold", gpu=target.gpus[0], reason="mine")
    world.run(20)
    assert target.gpus[0] not in where(world)
    assert list(where(world).values()) == ["ready", "ready"]
    assert [line.state for line in world.actions(START) if line.target == target][-1] is ActionState.CANCELLED
    assert set(node.processes) == {replica.replica for replica in world.core.view().replicas}


def test_without_another_gpu_it_waits_and_says_for_what(make_world: MakeWorld) -> None:
    world = make_world(CHAT, gpus=2)
    node = world.nodes["n1"]
    world.ask("hold", gpu=node.gpus[0], reason="a look")
    world.run(4)
    reopen(world, 60)
    (chat,) = world.core.view().deployments
    assert (chat.ready, chat.short_because) == (1, "1 to start: no GPU is free: 1 held, 1 occupied")
    world.ask("lift", gpu=node.gpus[0])
    world.run(10)
    assert list(where(world).values()) == ["ready", "ready"]


def test_what_a_silent_node_did_not_stop_in_time_has_an_end_once_it_speaks_again(make_world: MakeWorld) -> None:
    alone = Deployment(name="chat", replicas=1, min_ready=0, drain_s=30.0)
    world = make_world(alone, nodes=1)
    node = world.nodes["n1"]
    world.deployments = [replace(alone, replicas=0)]
    world.tell(Declared(deployment=world.deployments[0]))
    node.silent = True
    world.run(120)
    assert [line.state for line in world.actions(STOP)] == [ActionState.ORDERED, ActionState.TIMED_OUT]
    assert len(world.core.view().replicas) == 1, "nobody knows whether it runs"
    world.restart()
    node.silent = False
    world.run(30)
    last = world.actions(STOP)[-1]
    assert (last.state, last.why) == (ActionState.DONE, "after its time: it has exited, and nothing of it is left")
    assert world.core.view().replicas == ()
    world.tell(Declared(deployment=alone))
    world.run(30)
    assert [replica.state for replica in world.core.view().replicas] == ["ready"]
