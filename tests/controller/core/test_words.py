"""The word that is shown for a GPU, and the line when it changes."""

from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import StateLine


def first_word(world: World, gpu: str) -> StateLine:
    return next(line for line in world.lines if isinstance(line, StateLine) and line.subject.gpu == gpu)


def test_a_gpu_of_which_nothing_was_said_before_its_fault_was_healthy(world: World) -> None:
    node = world.nodes["n1"]
    node.hit(node.gpus[7], "xid:79", world.now, fence=True)
    world.run(4)
    assert first_word(world, node.gpus[7]).from_ == "healthy"


def test_a_gpu_that_comes_with_a_fault_was_nothing_before() -> None:
    node = Node("n1")
    world = World([node])
    node.hit(node.gpus[0], "xid:79", world.now, fence=True)
    world.run(4)
    assert first_word(world, node.gpus[0]).from_ is None
