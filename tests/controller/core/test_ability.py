"""What a node cannot do is not ordered: it waits for a person, and goes by itself once the node can."""

from tests.controller.core.conftest import MakeWorld
from tests.controller.core.repairs.test_workflow import IDLE, REBOOT, RESET, states
from tests.sim.world import World
from vocab.lines import NoteLine
from vocab.states import ActionKind, ActionState


def notes(world: World, code: str) -> list[str]:
    return [line.text for line in world.lines if isinstance(line, NoteLine) and line.code == code]


def test_a_reset_that_the_node_has_no_means_for_waits_for_a_person_and_is_not_ordered(make_world: MakeWorld) -> None:
    world = make_world(IDLE)
    node = world.nodes["n1"]
    node.abilities = (ActionKind.REBOOT_NODE,)
    world.run(10)
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(300)
    assert states(world, RESET) == [ActionState.WAITING]
    assert "n1 has no means for reset_gpu" in world.actions(RESET)[0].why
    world.ask("approve", action=world.actions(RESET)[0].id, reason="try")
    assert "has no means for reset_gpu" in notes(world, "refused")[0]
    assert states(world, RESET) == [ActionState.WAITING]


def test_it_is_ordered_once_the_node_has_the_means(make_world: MakeWorld) -> None:
    world = make_world(IDLE)
    node = world.nodes["n1"]
    node.obeys, node.abilities = True, ()
    world.run(10)
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(60)
    assert states(world, RESET) == [ActionState.WAITING]
    node.abilities = (RESET, REBOOT)
    world.run(60)
    assert states(world, RESET)[-1] is ActionState.DONE


def test_a_node_that_says_nothing_of_its_means_is_asked(make_world: MakeWorld) -> None:
    world = make_world(IDLE)
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(60)
    assert states(world, RESET) == [ActionState.ORDERED, ActionState.REFUSED]
