"""The red button: of everything, of a pool, of a node, and by a file; they add up."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.core.fleet.settings import Settings
from controller.core.fleet.stimuli import Deployment, Shaped
from controller.core.policy.pause import is_held_back
from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import HoldLine, NoteLine
from vocab.states import ActionKind, ActionState

POOLS = {"blue": ("n1",), "green": ("n2", "n3")}


@pytest.fixture
def world() -> World:
    return pooled()


def pooled() -> World:
    world = World([Node(f"n{n}", gpus=2) for n in (1, 2, 3)], (Deployment(name="idle", replicas=0),), Settings())
    world.tell(Shaped(pools=POOLS))
    world.run(6)
    return world


def ops(world: World, node: str) -> list[str]:
    gpus = world.nodes[node].gpus
    return [line.op for line in world.lines if isinstance(line, HoldLine) and line.subject.gpu in gpus]


def hit(world: World, node: str) -> None:
    world.nodes[node].hit(world.nodes[node].gpus[0], "xid:95", world.now)
    world.run(6)


def test_an_action_that_waited_is_still_shown_while_a_pause_stands() -> None:
    node = Node("n1", gpus=4)
    world = World([node], (Deployment(name="chat", replicas=3, min_ready=2),), Settings())
    world.run(12)
    node.hit(node.gpus[0], "xid:79", world.now)  # only a reboot ends it, which takes the other GPUs, too
    world.run(20)
    waiting = [action for action in world.core.view().actions if action.state is ActionState.WAITING]
    assert [action.of for action in waiting] == [ActionKind.REBOOT_NODE]
    world.ask("pause", reason="change freeze")
    world.run(4)
    held = [action for action in world.core.view().actions if is_held_back(action)]
    assert [action.id for action in held] == [waiting[0].id]
    world.ask("resume")
    world.run(4)
    assert not any(is_held_back(action) for action in world.core.view().actions)


def come_back(world: World) -> None:
    """A new controller, told as at every start how the fleet is divided."""
    world.restart()
    world.tell(Shaped(pools=POOLS))
    world.run(2)


def obeyed(world: World) -> set[str]:
    """The nodes whose agents are told that they are paused."""
    told = {name: world.core.desired(name) for name in world.nodes}
    return {name for name, desired in told.items() if desired is not None and desired.paused}


def test_the_pause_of_a_pool_is_told_to_its_agents_and_to_no_others(world: World) -> None:
    world.ask("pause", pool="green", reason="new driver")
    assert obeyed(world) == {"n2", "n3"}
    hit(world, "n1")
    hit(world, "n2")
    assert (ops(world, "n1"), ops(world, "n2")) == (["placed"], ["would_place"])


def test_the_pause_of_a_node_is_told_to_its_agent_and_to_no_other(world: World) -> None:
    world.ask("pause", node="n3", reason="somebody works on it")
    assert obeyed(world) == {"n3"}
    hit(world, "n3")
    hit(world, "n2")
    assert (ops(world, "n3"), ops(world, "n2")) == (["would_place"], ["placed"])


def test_what_a_part_held_back_goes_on_when_that_part_may_act_again(world: World) -> None:
    world.ask("pause", pool="green")
    hit(world, "n2")
    world.ask("resume", pool="green")
    world.run(4)
    assert ops(world, "n2") == ["would_place", "placed"]


def test_pauses_add_up_and_each_ends_by_itself_alone(world: World) -> None:
    world.ask("pause", reason="all")
    world.ask("pause", pool="green", reason="part")
    world.nodes["n1"].paused = True
    world.run(4)
    assert [(each.scope, each.name) for each in world.core.view().pauses] == [
        ("fleet", None),
        ("pool", "green"),
        ("file", "n1"),
    ]
    world.ask("resume")
    assert obeyed(world) == {"n2", "n3"}
    hit(world, "n1")
    assert ops(world, "n1") == ["would_place"]


def test_a_pause_outlives_the_controller(world: World) -> None:
    world.ask("pause", pool="green")
    world.ask("pause", node="n1")
    come_back(world)
    assert obeyed(world) == {"n1", "n2", "n3"}
    assert world.core.view().paused is False


@pytest.mark.parametrize(
    ("named", "said"), [({"pool": "gren"}, "known: blue, green"), ({"node": "n9"}, "no node 'n9'")]
)
def test_a_red_button_that_misses_says_so(world: World, named: dict[str, str], said: str) -> None:
    for do in ("pause", "resume"):
        (line,) = world.ask(do, **named)
        assert isinstance(line, NoteLine)
        assert line.code == "refused"
        assert said in line.text
    assert world.core.view().pauses == ()


def test_an_approval_is_refused_while_its_node_or_pool_is_paused(world: World) -> None:
    node = world.nodes["n2"]
    world.ask("hold", gpu=node.gpus[1], reason="burn-in")  # a reboot would take it along
    node.hit(node.gpus[0], "xid:79", world.now)
    world.run(30)
    waiting = next(action for action in world.core.view().actions if action.state == "waiting")
    world.ask("pause", pool="green", reason="new driver")
    (line,) = world.ask("approve", action=waiting.id)
    assert isinstance(line, NoteLine)
    assert (line.code, "new driver" in line.text) == ("refused", True)


scopes = st.sampled_from([{}, {"pool": "blue"}, {"pool": "green"}, {"node": "n1"}, {"node": "n2"}])
moves = st.lists(st.tuples(st.sampled_from(["pause", "resume", "restart"]), scopes), max_size=12)


@settings(max_examples=60, deadline=None)
@given(moves)
def test_a_node_is_paused_exactly_while_a_pause_that_covers_it_stands(moves: list[tuple[str, dict[str, str]]]) -> None:
    world, stands = pooled(), set()
    for do, scope in moves:
        if do == "restart":
            come_back(world)
        else:
            world.ask(do, **scope)
            (stands.add if do == "pause" else stands.discard)(tuple(scope.items()))
        covered = {
            name
            for name in world.nodes
            if stands & {(), (("node", name),), *((("pool", pool),) for pool, nodes in POOLS.items() if name in nodes)}
        }
        assert obeyed(world) == covered
