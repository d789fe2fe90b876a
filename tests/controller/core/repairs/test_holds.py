"""Who keeps a GPU out of work: levels, pause, budget, owners."""

import pytest

from controller.core.fleet.settings import Limits, Settings
from controller.core.fleet.stimuli import Deployment
from tests.controller.core.conftest import MakeWorld
from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import HoldLine, NoteLine, Subject
from vocab.states import ActionKind, ActionState, Level

IDLE = Deployment(name="idle", replicas=0)


def ops(world: World) -> list[tuple[str, str]]:
    return [(line.owner, line.op) for line in world.lines if isinstance(line, HoldLine)]


def test_observe_says_what_would_be_done_and_does_nothing(make_world: MakeWorld) -> None:
    world = make_world(level=Level.OBSERVE)
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:79", world.now)
    world.run(60)
    assert ops(world) == [("policy", "would_place")]
    told = [(line.of, line.state) for line in world.actions() if line.incident]
    assert told == [(ActionKind.DRAIN, ActionState.WOULD), (ActionKind.REBOOT_NODE, ActionState.WOULD)]
    assert world.core.view().holds == ()
    assert {replica.state for replica in world.core.view().replicas} == {"ready"}


def test_cordon_replaces_and_drains_and_leaves_the_repair(make_world: MakeWorld) -> None:
    world = make_world(level=Level.CORDON)
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:79", world.now)
    world.run(60)
    assert ops(world) == [("policy", "placed")]
    assert [line.state for line in world.actions(ActionKind.DRAIN)][-1] is ActionState.DONE
    assert [line.state for line in world.actions(ActionKind.REBOOT_NODE)] == [ActionState.WOULD]


def test_the_level_of_the_settings_is_a_ceiling(make_world: MakeWorld) -> None:
    world = make_world(settings=Settings(level=Level.OBSERVE))
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:79", world.now)
    world.run(10)
    assert ops(world) == [("policy", "would_place")]


@pytest.mark.parametrize(
    "code", ["xid:13", "xid:31", "xid:45", "remap_pending", "activity_contradiction", "power_brake"]
)
def test_a_fault_that_asks_for_less_than_a_reset_in_earnest_holds_nothing(world: World, node: Node, code: str) -> None:
    node.hit(node.gpus[0], code, world.now)
    world.run(30)
    assert ops(world) == []


@pytest.mark.parametrize("code", ["xid:79", "xid:48", "xid:95", "gpu_lost", "ecc_uncorrectable", "remap_failed"])
def test_a_fault_that_asks_for_a_reset_or_more_holds_its_gpu(world: World, node: Node, code: str) -> None:
    node.hit(node.gpus[0], code, world.now)
    world.run(4)
    assert [hold.subject.gpu for hold in world.placed()] == [node.gpus[0]]


def test_severity_and_advice_must_come_from_one_event(world: World, node: Node) -> None:
    node.hit(node.gpus[0], "power_brake", world.now)  # an error that asks to look
    node.hit(node.gpus[0], "remap_pending", world.now)  # a warning that asks for a reset
    world.run(10)
    assert ops(world) == []


def test_an_injected_fault_is_shown_and_holds_nothing(world: World, node: Node) -> None:
    node.hit(node.gpus[0], "xid:79", world.now, injected=True)
    node.lost.clear()
    before = len(world.lines)
    world.run(30)
    assert [type(line).__name__ for line in world.lines[before:]] == ["EventLine"]


def test_a_pause_stops_harm_and_a_resume_goes_on(world: World, node: Node) -> None:
    world.ask("pause", reason="an upgrade")
    node.hit(node.gpus[0], "xid:79", world.now)
    world.run(20)
    assert ops(world) == [("policy", "would_place")]
    assert [line for line in world.ordered() if line.incident] == []
    world.ask("resume")
    world.run(40)
    assert ops(world) == [("policy", "would_place"), ("policy", "placed")]
    assert [line.state for line in world.actions(ActionKind.DRAIN)][-1] is ActionState.DONE
    assert world.actions(ActionKind.REBOOT_NODE)[-1].state is ActionState.WAITING


def test_a_long_pause_needs_fresh_evidence(world: World, node: Node) -> None:
    world.ask("pause")
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(700)
    world.ask("resume")
    world.run(20)
    assert world.placed() == []
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(4)
    assert len(world.placed()) == 1


def test_a_gpu_that_still_does_not_answer_is_fresh_evidence(world: World, node: Node) -> None:
    world.ask("pause")
    node.hit(node.gpus[0], "xid:79", world.now)
    world.run(700)
    world.ask("resume")
    assert len(world.placed()) == 1


def test_releases_go_on_during_a_pause(world: World, node: Node) -> None:
    node.hit(node.gpus[5], "xid:95", world.now)
    world.run(10)
    world.ask("pause")
    node.clear(node.gpus[5], world.now)
    world.run(4)
    assert ops(world) == [("policy", "placed"), ("policy", "lifted")]
    assert world.gpu(node.gpus[5]).placeable


def test_the_file_of_a_node_pauses_that_node_alone(make_world: MakeWorld) -> None:
    world = make_world(nodes=2)
    for node in world.nodes.values():
        node.paused = node.name == "n1"
    world.run(2)
    for node in world.nodes.values():
        node.hit(node.gpus[7], "xid:95", world.now)
    world.run(4)
    assert [hold.subject.gpu for hold in world.placed()] == ["GPU-n2-7"]


def test_cordons_stop_at_the_budget_and_lifting_goes_on(make_world: MakeWorld) -> None:
    world = make_world(IDLE, nodes=8, gpus=1, settings=Settings(limits=Limits(cordons=5)))
    for node in world.nodes.values():
        node.hit(node.gpus[0], "xid:95", world.now)
    world.run(10)
    assert len(world.placed()) == 5
    assert sum(op == "would_place" for _, op in ops(world)) == 3
    assert [line.code for line in world.lines if isinstance(line, NoteLine) and line.code == "too_much_sick"]
    assert [c.subject for c in world.core.view().conditions if c.code == "too_much_sick"] == [Subject()]
    first = world.nodes["n1"]
    first.clear(first.gpus[0], world.now)
    world.run(4)
    assert ("policy", "lifted") in ops(world)
    assert len(world.placed()) == 6, "room came back, and the evidence is fresh"


def test_what_did_not_fit_needs_fresh_evidence_after_ten_minutes(make_world: MakeWorld) -> None:
    world = make_world(IDLE, nodes=2, settings=Settings(limits=Limits(cordons=1)))
    node = world.nodes["n1"]
    world.nodes["n2"].hit("GPU-n2-0", "xid:95", world.now)
    world.run(2)
    node.hit(node.gpus[1], "xid:95", world.now)
    world.run(1300)
    assert len(world.placed()) == 1
    node.hit(node.gpus[1], "xid:95", world.now)
    world.run(4)
    assert len(world.placed()) == 2


def test_a_small_fleet_may_always_cordon_one(make_world: MakeWorld) -> None:
    world = make_world(IDLE, gpus=1, settings=Settings(limits=Limits(cordons_ratio=0.01)))
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(4)
    assert len(world.placed()) == 1


def test_a_persons_hold_stays_when_the_fault_is_over(world: World, node: Node) -> None:
    world.ask("hold", gpu=node.gpus[6], reason="RMA")
    node.hit(node.gpus[6], "xid:95", world.now)
    world.run(10)
    node.clear(node.gpus[6], world.now)
    world.run(10)
    assert [(hold.owner, hold.reason) for hold in world.core.view().holds] == [("operator", "RMA (ada)")]
    assert world.gpu(node.gpus[6]).state == "cordoned"


def test_a_held_gpu_takes_no_replica(make_world: MakeWorld) -> None:
    world = make_world(IDLE)
    world.ask("hold", gpu="GPU-n1-0", reason="mine")
    world.deployments.append(Deployment(name="chat", replicas=7))
    world._declare()
    world.run(20)
    assert "GPU-n1-0" not in {gpu for replica in world.core.view().replicas for gpu in replica.gpus}
    assert len(world.core.view().replicas) == 7


def test_lifting_anothers_hold_is_refused_without_force(world: World, node: Node) -> None:
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(4)
    hold = world.placed()[0]
    [said] = world.ask("lift", hold=hold.id, reason="I want it")
    assert (said.op, said.owner) == ("refused", "policy")
    assert "force" in said.reason
    assert [h.id for h in world.core.view().holds] == [hold.id]


def test_a_hold_lifted_with_force_is_not_placed_again_for_the_same_evidence(world: World, node: Node) -> None:
    node.hit(node.gpus[5], "xid:95", world.now)
    world.run(4)
    world.ask("lift", hold=world.placed()[0].id, reason="a false alarm", force=True)
    world.run(30)
    assert len(world.placed()) == 1
    assert world.core.view().holds == ()
    node.faults.clear()
    node.hit(node.gpus[5], "xid:95", world.now)  # another event
    world.run(4)
    assert len(world.placed()) == 2


def test_holding_twice_for_one_reason_is_one_hold(world: World, node: Node) -> None:
    world.ask("hold", gpu=node.gpus[6], reason="RMA")
    assert world.ask("hold", gpu=node.gpus[6], reason="RMA") == []
    assert len(world.core.view().holds) == 1


def test_a_person_cannot_hold_in_the_policys_name(world: World, node: Node) -> None:
    [said] = world.ask("hold", gpu=node.gpus[6], reason="x", owner="policy")
    assert said.op == "refused"
    assert world.core.view().holds == ()


def test_a_held_node_takes_no_replica(make_world: MakeWorld) -> None:
    world = make_world(IDLE, nodes=2)
    world.ask("hold", node="n1", reason="a new cable")
    world.deployments.append(Deployment(name="chat", replicas=4))
    world._declare()
    world.run(20)
    assert {replica.node for replica in world.core.view().replicas} == {"n2"}


def test_a_fence_that_expires_is_lifted_by_its_owner(make_world: MakeWorld) -> None:
    world = make_world(level=Level.FENCE)
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:95", world.now, fence=True)
    world.run(4)
    assert [hold.owner for hold in world.core.view().holds] == ["agent:n1"]
    assert world.gpu(node.gpus[0]).phase == "fenced"
    from vocab.messages import FenceItem

    node.fences.clear()
    node.spool.append(FenceItem(at=world.now, node="n1", gpu=node.gpus[0], op="expired", why="not seen again in 120 s"))
    world.run(4)
    assert world.core.view().holds == ()


def test_a_node_is_told_of_the_gpus_that_a_person_called_healthy(world: World, node: Node) -> None:
    at = world.now
    world.ask("set_healthy", gpu=node.gpus[3], reason="reseated")
    desired = world.core.desired("n1")
    assert desired is not None
    assert desired.healthy == {node.gpus[3]: at}
