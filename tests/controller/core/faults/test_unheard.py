"""What we did not hear for our own lateness is nobody's silence."""

from controller.core.fleet.nodes import Node as Known
from controller.core.fleet.settings import EXCUSED_MOST_S
from controller.core.fleet.stimuli import Deaf, Knocked, Reported
from tests.controller.core.conftest import MakeWorld
from tests.sim.world import World
from vocab.lines import StateLine


def words(world: World, node: str) -> list[str]:
    return [line.to for line in world.lines if isinstance(line, StateLine) and line.subject.node == node]


def test_a_node_whose_report_waits_here_is_not_silent(make_world: MakeWorld) -> None:
    world = make_world(nodes=2)
    world.nodes["n1"].silent = True  # what it sends is not heard
    for _ in range(6):
        world.run(10)
        world.core.see(Knocked(node="n1"), world.now)
    assert words(world, "n1") == ["live"]
    world.run(14)
    assert words(world, "n1") == ["live"]
    world.run(2)
    assert words(world, "n1") == ["live", "unknown"], "nothing has arrived for fifteen seconds"


def test_a_node_that_was_called_silent_comes_back_when_it_is_heard_and_not_before(make_world: MakeWorld) -> None:
    world = make_world(nodes=2)
    world.nodes["n1"].silent = True
    world.run(20)
    world.core.see(Knocked(node="n1"), world.now)
    world.run(4)
    assert words(world, "n1") == ["live", "unknown"]
    world.tell(Reported(node="n1"))
    assert words(world, "n1") == ["live", "unknown", "live"]


def test_time_in_which_nothing_was_read_is_left_out_of_silence(make_world: MakeWorld) -> None:
    world = make_world(nodes=3)
    for node in world.nodes.values():
        node.silent = True
    heard = world.now
    world.now += 40.0  # the process stood still
    world.core.see(Deaf(seconds=40.0), world.now)
    world.run(12)
    assert [words(world, name) for name in world.nodes] == [["live"]] * 3
    world.nodes["n2"].silent = False  # what had waited is read
    world.run(20)
    assert [words(world, name) for name in world.nodes] == [["live", "unknown"], ["live"], ["live", "unknown"]]
    states = [line for line in world.lines if isinstance(line, StateLine) and line.subject.node is not None]
    unknown = [line.at for line in states if line.to == "unknown"]
    assert unknown == [heard + 40.0 + 15.0] * 2


def test_being_deaf_for_longer_than_a_node_was_silent_promises_it_no_future(make_world: MakeWorld) -> None:
    world = make_world(nodes=2)
    world.nodes["n1"].silent = True
    heard = world.now
    world.now += 5.0
    world.core.see(Deaf(seconds=3600.0), world.now)
    world.run(60)
    states = [line for line in world.lines if isinstance(line, StateLine) and line.subject.node == "n1"]
    assert [(line.to, line.at) for line in states[1:]] == [("unknown", heard + 5.0 + 15.0)]


def test_a_loop_that_is_late_all_the_time_comes_to_an_end_with_a_node_that_is_gone(make_world: MakeWorld) -> None:
    world = make_world(nodes=2)
    world.nodes["n1"].silent = True
    heard = world.now
    for _ in range(60):
        world.run(1, every_s=1.0)
        world.core.see(Deaf(seconds=0.75), world.now)
    states = [line for line in world.lines if isinstance(line, StateLine) and line.subject.node == "n1"]
    unknown = [line.at - heard for line in states if line.to == "unknown"]
    assert len(unknown) == 1
    assert 15.0 + EXCUSED_MOST_S <= unknown[0] <= 15.0 + EXCUSED_MOST_S + 2.0


def test_of_two_long_stops_in_one_silence_most_is_left_out(make_world: MakeWorld) -> None:
    world = make_world(nodes=2)
    world.nodes["n1"].silent = True
    for _ in range(2):
        world.now += 25.0  # the process stood still
        world.core.see(Deaf(seconds=25.0), world.now)
        world.run(2)
    assert words(world, "n1") == ["live"]


def test_usual_gaps_go_by_arrival_and_not_by_how_long_a_report_waited_here() -> None:
    known = Known("n1")
    for at in range(0, 200, 2):
        known.knock(float(at))
        known.report(at + (at % 4) * 7.0, paused=False)
    assert known.silence_s == 15.0


def test_a_node_that_nobody_knows_does_not_become_known_by_knocking(make_world: MakeWorld) -> None:
    world = make_world()
    world.core.see(Knocked(node="other"), world.now)
    assert [node.node for node in world.core.view().nodes] == ["n1"]
