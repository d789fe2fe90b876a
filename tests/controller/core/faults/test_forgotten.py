"""An agent that has lost its disk does not know what it had opened: what it does not see again is over after a time."""

import pytest
from msgspec.structs import replace

from controller.core.fleet.stimuli import NodeReported, Stimulus
from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import ConditionLine, Subject


class Forgetful(Node):
    """A node whose agent tells since when it remembers."""

    since: float | None = 0.0

    def report(self, now: float) -> list[Stimulus]:
        """The batch of a node, with the age of its memory."""
        told = super().report(now)
        facts = [one.facts for one in told if isinstance(one, NodeReported)]
        return [
            NodeReported(facts=replace(facts[0], remembers_since=self.since)) if one_is(one) else one for one in told
        ]

    def forget(self, now: float) -> None:
        """Its disk is lost."""
        self.since, self.told_facts = now, None
        self.faults.clear()


def one_is(stimulus: Stimulus) -> bool:
    return isinstance(stimulus, NodeReported)


@pytest.fixture
def node() -> Forgetful:
    return Forgetful("n1", 4)


@pytest.fixture
def world(node: Forgetful) -> World:
    world = World([node])
    world.run(12)
    node.hit(node.gpus[0], "nvlink_down", world.now)
    world.run(10)
    return world


def standing(world: World, node: Node, gpu: int = 0) -> list[str]:
    return [one.code for one in world.core.view().conditions if one.subject == Subject(gpu=node.gpus[gpu])]


def test_what_is_not_seen_again_is_over_after_the_grace_and_the_line_says_why(world: World, node: Forgetful) -> None:
    node.forget(world.now)
    world.run(290)
    assert standing(world, node) == ["nvlink_down"]
    world.run(20)
    assert standing(world, node) == []
    last = [line for line in world.lines if isinstance(line, ConditionLine)][-1]
    assert (last.state, last.cleared_because) == (
        "cleared",
        "its node has lost its memory of it and does not see it again",
    )


def test_what_is_seen_again_stands(world: World, node: Forgetful) -> None:
    node.forget(world.now)
    world.run(20)
    node.hit(node.gpus[0], "nvlink_down", world.now)
    world.run(700)
    assert standing(world, node) == ["nvlink_down"]


def test_of_a_gpu_that_is_not_read_nothing_is_over(world: World, node: Forgetful) -> None:
    node.blind.add(node.gpus[0])
    node.forget(world.now)
    world.run(700)
    assert standing(world, node) == ["nvlink_down"]
    node.blind.clear()
    world.run(310)
    assert standing(world, node) == []


def test_an_agent_that_remembers_keeps_what_it_opened(world: World, node: Forgetful) -> None:
    node.told_facts = None  # it connects anew
    world.run(700)
    assert standing(world, node) == ["nvlink_down"]


def test_what_a_reset_ends_is_not_ended_so(world: World, node: Forgetful) -> None:
    node.hit(node.gpus[1], "xid:48", world.now)
    world.run(4)
    node.forget(world.now)
    world.run(700)
    assert standing(world, node, 1) == ["xid:48"]


def test_a_restart_of_the_controller_in_between_forgets_nothing(world: World, node: Forgetful) -> None:
    node.forget(world.now)
    world.run(100)
    world.restart()
    world.run(310)
    assert standing(world, node) == []
