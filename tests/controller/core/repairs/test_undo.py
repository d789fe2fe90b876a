"""Undo: what automation did lately is taken back, what cannot be is named, and old evidence does not do it again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.core.fleet.settings import Limits, Settings
from controller.core.fleet.stimuli import Deployment
from tests.controller.core.conftest import MakeWorld
from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import AnyLine, HoldLine, NoteLine
from vocab.states import ActionKind, ActionState, Level

WHOLE = Deployment(name="chat", replicas=8, min_ready=8)  # no spare: every drain waits
IDLE = Deployment(name="idle", replicas=0)
DRAIN, RESET = ActionKind.DRAIN, ActionKind.RESET_GPU


def hit(node: Node, world: World, *gpus: int, code: str = "xid:95", after_s: float = 6) -> None:
    for gpu in gpus:
        node.hit(node.gpus[gpu], code, world.now)
    world.run(after_s)


def undo(world: World, since_s: float = 600.0, **more: object) -> list[AnyLine]:
    return world.ask("undo", since_s=since_s, reason="a bad probe", **more)  # type: ignore[arg-type]


def policy_holds(world: World) -> list[HoldLine]:
    return [hold for hold in world.core.view().holds if hold.owner == "policy"]


def told(lines: list[AnyLine]) -> list[str]:
    return [line.text for line in lines if isinstance(line, NoteLine) and line.code == "not_undone"]


def test_holds_are_lifted_and_waiting_drains_called_off(make_world: MakeWorld) -> None:
    world = make_world(WHOLE)
    hit(world.nodes["n1"], world, 0, 1)
    lines = undo(world)
    assert [line.op for line in lines if isinstance(line, HoldLine)] == ["lifted", "lifted"]
    assert [line.state for line in world.actions(DRAIN)][-2:] == [ActionState.CANCELLED] * 2
    world.run(10)
    assert policy_holds(world) == []
    assert {replica.state for replica in world.core.view().replicas} <= {"ready", "degraded"}


def test_the_same_old_evidence_holds_nothing_again_whatever_happens(make_world: MakeWorld) -> None:
    world = make_world(WHOLE)
    node = world.nodes["n1"]
    hit(node, world, 0)
    undo(world)
    hit(node, world, 0)  # the fold of the same fault grows: that is no new event
    world.restart()
    world.run(700)
    world.ask("pause")
    world.ask("resume")
    world.run(20)
    assert policy_holds(world) == []


def test_new_evidence_holds_again(make_world: MakeWorld) -> None:
    world = make_world(WHOLE)
    node = world.nodes["n1"]
    hit(node, world, 0)
    undo(world)
    hit(node, world, 0, code="xid:48")
    assert len(policy_holds(world)) == 1


def test_what_waited_for_room_is_not_placed_into_the_room_that_the_undo_makes(make_world: MakeWorld) -> None:
    world = make_world(WHOLE, settings=Settings(limits=Limits(node_ratio=0.25)))
    hit(world.nodes["n1"], world, 0, 1, 2, 3)
    assert len(policy_holds(world)) == 2
    undo(world)
    world.run(60)
    assert policy_holds(world) == []
    assert "too_much_sick" not in {condition.code for condition in world.core.view().conditions}


def test_only_what_was_done_since_is_taken_back(make_world: MakeWorld) -> None:
    world = make_world(WHOLE)
    node = world.nodes["n1"]
    hit(node, world, 0, after_s=700)
    hit(node, world, 1)
    undo(world, 60)
    assert [hold.subject.gpu for hold in policy_holds(world)] == [node.gpus[0]]


def test_only_one_rule_is_taken_back_if_one_is_named(make_world: MakeWorld) -> None:
    world = make_world(WHOLE)
    node = world.nodes["n1"]
    hit(node, world, 0)
    hit(node, world, 1, code="xid:48")
    undo(world, rule="xid:48")
    assert [hold.subject.gpu for hold in policy_holds(world)] == [node.gpus[0]]


def test_holds_and_drains_of_people_and_programs_stay(make_world: MakeWorld) -> None:
    world = make_world(WHOLE)
    node = world.nodes["n1"]
    world.ask("hold", gpu=node.gpus[0], reason="burn-in")
    world.ask("drain", gpu=node.gpus[1], reason="riser")
    world.run(4)
    undo(world)
    world.run(10)
    assert [hold.owner for hold in world.core.view().holds] == ["operator", "operator"]
    assert [line.state for line in world.actions(DRAIN)][-1] is ActionState.WAITING


def test_a_reset_that_ran_is_named_and_its_gpu_is_proven_before_it_serves(make_world: MakeWorld) -> None:
    world = make_world(IDLE)
    node = world.nodes["n1"]
    node.obeys = True
    hit(node, world, 0)
    (reset,) = world.ordered(RESET)
    assert reset.subject.gpu == node.gpus[0]
    lines = undo(world)
    assert any(text.startswith("reset_gpu done") for text in told(lines))
    assert any("not validated; its hold stays" in text for text in told(lines))
    assert len(policy_holds(world)) == 1
    world.run(900)
    assert policy_holds(world) == []


def test_a_reset_that_its_node_has_not_begun_is_called_off(make_world: MakeWorld) -> None:
    world = make_world(IDLE)
    node = world.nodes["n1"]
    node.busy = True
    hit(node, world, 0)
    undo(world)
    assert [line.state for line in world.actions(RESET)][-1] is ActionState.CANCELLED
    assert policy_holds(world) == []
    desired = world.core.desired("n1")
    assert desired is not None
    assert desired.orders == ()


def test_a_drained_replica_is_named_and_another_is_started_on_the_gpu_that_is_free_again(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=8, min_ready=7), level=Level.CORDON)
    hit(world.nodes["n1"], world, 0, after_s=30)
    lines = undo(world)
    assert any(text.startswith("drain done") for text in told(lines))
    world.run(12)
    assert sum(replica.state == "ready" for replica in world.core.view().replicas) == 8


def test_three_wrong_holds_of_a_rule_put_it_into_shadow(make_world: MakeWorld) -> None:
    world = make_world(WHOLE)
    hit(world.nodes["n1"], world, 0, 1, 2)
    undo(world)
    world.run(4)
    assert [note.rule for note in world.core.view().demoted] == ["xid:95"]


def test_a_fence_is_left_to_its_agent_and_named(make_world: MakeWorld) -> None:
    world = make_world(WHOLE, level=Level.FENCE)
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:79", world.now, fence=True)
    world.run(4)
    assert any("fence by agent:n1" in text for text in told(undo(world)))


def test_nothing_to_undo_says_nothing_and_no_time_is_refused(world: World) -> None:
    assert undo(world) == []
    (line,) = world.ask("undo")
    assert isinstance(line, NoteLine)
    assert line.code == "refused"


def test_a_rule_that_there_is_not_is_refused_with_those_that_have_acted_and_the_nearest(make_world: MakeWorld) -> None:
    world = make_world(WHOLE)
    hit(world.nodes["n1"], world, 0)
    assert undo(world, rule="xid:48") == [], "there is such a rule, and it has done nothing"
    for rule, said in (("nosuch", "xid:95"), ("gpu_lots", "did you mean gpu_lost")):
        (line,) = undo(world, rule=rule)
        assert isinstance(line, NoteLine)
        assert line.code == "refused"
        assert f"there is no rule '{rule}'" in line.text
        assert said in line.text


@pytest.mark.parametrize("keep_from_end", [0, 1, 3, 5, 8])
def test_an_undo_that_was_cut_by_a_crash_is_whole_or_not_at_all_and_can_be_asked_again(
    make_world: MakeWorld, keep_from_end: int
) -> None:
    world = make_world(WHOLE)
    hit(world.nodes["n1"], world, 0, 1)
    before = len(world.lines)
    undo(world)
    world.restart(len(world.lines) if keep_from_end == 0 else before)  # one transaction: all of its lines or none
    world.run(2)
    undo(world)
    world.run(30)
    assert policy_holds(world) == []


faults = st.lists(
    st.tuples(st.integers(0, 7), st.sampled_from(["xid:95", "xid:48", "xid:79", "remap_failed"]), st.integers(1, 40)),
    max_size=6,
)


@settings(max_examples=40, deadline=None)
@given(faults, st.booleans(), st.booleans())
def test_whatever_went_before_nothing_new_is_done_after_an_undo_without_new_evidence(
    hits: list[tuple[int, str, int]], hands: bool, restarts: bool
) -> None:
    world = World([Node("n1"), Node("n2")], (Deployment(name="chat", replicas=10, min_ready=4),))
    for node in world.nodes.values():
        node.obeys = hands
    world.run(12)
    for gpu, code, wait_s in hits:
        hit(world.nodes["n1"], world, gpu, code=code, after_s=wait_s)
    undo(world, 3600)
    after = len(world.lines)
    if restarts:
        world.restart()
    world.run(120)
    assert [line for line in world.lines[after:] if isinstance(line, HoldLine) and line.op == "placed"] == []
    harmful = [line for line in world.lines[after:] if getattr(line, "of", None) in {DRAIN, RESET}]
    assert [line for line in harmful if line.state is ActionState.ORDERED and line.incident] == []
