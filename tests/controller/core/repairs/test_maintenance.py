"""A maintenance: one order holds, drains and leaves alone, and it ends by itself at its time, whoever is there then."""

from controller.core.fleet.settings import Limits, Settings
from controller.core.fleet.stimuli import Deployment
from controller.core.policy.pause import MAINTENANCE
from tests.controller.core.conftest import MakeWorld
from tests.sim.world import World
from vocab.lines import AnyLine, HoldLine, NoteLine
from vocab.states import ActionKind, ActionState

CHAT = Deployment(name="chat", replicas=2, min_ready=1)
WHOLE = Deployment(name="chat", replicas=8, min_ready=8)  # no spare: every drain waits
HOUR = 3600.0


def maintain(world: World, for_s: float = HOUR, node: str = "n1") -> list[AnyLine]:
    return world.ask("maintain", node=node, until=world.now + for_s, reason="new fans")


def held(world: World) -> list[HoldLine]:
    return [hold for hold in world.core.view().holds if hold.owner == MAINTENANCE]


def refused(lines: list[AnyLine]) -> list[str]:
    return [line.text for line in lines if isinstance(line, NoteLine) and line.code == "refused"]


def test_the_node_is_held_and_its_replicas_move(make_world: MakeWorld) -> None:
    world = make_world(CHAT, nodes=2)
    maintain(world)
    world.run(60)
    (hold,) = held(world)
    assert hold.reason.endswith("new fans (ada)")
    assert {replica.node for replica in world.core.view().replicas} == {"n2"}


def test_a_hold_that_merely_bears_its_name_pauses_nothing(make_world: MakeWorld) -> None:
    world = make_world(CHAT, nodes=2)
    world.ask("hold", node="n1", owner=MAINTENANCE, reason="placed by a program of an older day")
    assert world.core.view().nodes[0].paused is False
    maintain(world)
    assert [hold.until is None for hold in held(world)] == [True, False]


def test_one_whose_end_is_moved_has_cordoned_its_node_once(make_world: MakeWorld) -> None:
    world = make_world(CHAT, nodes=2, settings=Settings(limits=Limits(cordons=1)))
    world.ask("hold", node="n2", reason="a new cable")
    world.ask("maintain", node="n1", until=world.now + HOUR, reason="new fans", force=True)
    (first,) = held(world)
    assert first.budget is not None
    world.run(400)
    maintain(world, 2 * HOUR)
    (moved,) = held(world)
    assert (moved.id, moved.stands_since, moved.budget) == (first.id, first.at, None)
    assert moved.until == world.now + 2 * HOUR
    world.run(250)
    assert world.core.view().budgets["cordons of the fleet"].used == 0
    maintain(world, 3 * HOUR)
    assert held(world)[0].stands_since == first.at


def test_it_ends_at_its_time_by_itself(make_world: MakeWorld) -> None:
    world = make_world(CHAT, nodes=2)
    maintain(world)
    world.run(HOUR - 5)
    assert held(world)
    world.run(10)
    assert held(world) == []


def test_it_ends_at_its_time_after_restarts_too(make_world: MakeWorld) -> None:
    world = make_world(CHAT, nodes=2)
    maintain(world, 300)
    world.restart()
    world.run(150)
    world.restart()
    assert held(world)
    world.run(160)
    assert held(world) == []


def test_a_fault_meanwhile_leads_to_nothing_and_is_acted_on_afterwards(make_world: MakeWorld) -> None:
    world = make_world(CHAT, nodes=2)
    maintain(world, 300)
    world.run(60)
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(30)
    assert not [line for line in world.actions(ActionKind.RESET_GPU) if line.state is ActionState.ORDERED]
    assert [hold.owner for hold in world.core.view().holds] == [MAINTENANCE]
    desired = world.core.desired("n1")
    assert desired is not None
    assert desired.paused


def test_said_again_it_is_the_same_with_another_end(make_world: MakeWorld) -> None:
    world = make_world(CHAT, nodes=2)
    maintain(world, 100)
    maintain(world, 500)
    world.run(200)
    assert len(held(world)) == 1
    world.run(310)
    assert held(world) == []


def test_drains_that_wait_are_called_off_with_its_end(make_world: MakeWorld) -> None:
    world = make_world(WHOLE)
    maintain(world, 60)
    world.run(30)
    assert {line.state for line in world.actions(ActionKind.DRAIN)} == {ActionState.WAITING}
    world.run(40)
    assert [line.state for line in world.actions(ActionKind.DRAIN)][-8:] == [ActionState.CANCELLED] * 8
    world.run(20)
    assert all(replica.ready for replica in world.core.view().replicas)


def test_a_person_may_end_it_before(make_world: MakeWorld) -> None:
    world = make_world(CHAT, nodes=2)
    maintain(world)
    world.ask("maintained", node="n1", reason="done")
    assert held(world) == []
    assert refused(world.ask("maintained", node="n1"))


def test_a_time_that_has_passed_and_a_node_that_is_not_are_refused(make_world: MakeWorld) -> None:
    world = make_world(CHAT)
    assert "time that is to come" in refused(maintain(world, -1))[0]
    assert "node that is known" in refused(maintain(world, node="n9"))[0]
    assert held(world) == []
