"""One fault, end to end: what the core decides, in which order, and that it decides it once."""

import pytest

from tests.controller.core.conftest import CHAT, PAIR
from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import ActionLine, ConditionLine, EventLine, HoldLine, IncidentLine, NoteLine, StateLine, Subject
from vocab.states import ActionKind, ActionState

START, DRAIN, STOP, REBOOT = (
    ActionKind.START_REPLICA,
    ActionKind.DRAIN,
    ActionKind.STOP_REPLICA,
    ActionKind.REBOOT_NODE,
)
KINDS = [EventLine, ConditionLine, IncidentLine, StateLine, HoldLine, ActionLine, NoteLine]


def drill(world: World, gpu: int = 0, *, fence: bool = True) -> str:
    """Xid 79 on a GPU, and time until all that follows has followed."""
    node = world.nodes["n1"]
    node.hit(node.gpus[gpu], "xid:79", world.now, fence=fence)
    world.run(40)
    return node.gpus[gpu]


def end_of(world: World) -> dict[str, object]:
    """What all lines add up to, without times and tokens."""
    ids = {
        (type(line).__name__, line.id): (getattr(line, "state", None) or getattr(line, "op", None))
        for line in world.lines
        if isinstance(line, ConditionLine | IncidentLine | HoldLine | ActionLine)
    }
    view = world.core.view()
    states = {gpu.uuid: gpu.state for node in view.nodes for gpu in node.gpus}
    return {"ids": ids, "gpus": states, "replicas": {r.replica: (r.state, r.gpus) for r in view.replicas}}


def test_a_lost_gpu_leads_to_one_hold_one_incident_one_replacement(world: World) -> None:
    old = world.replica_on(world.nodes["n1"].gpus[0])
    gpu = drill(world)
    assert [hold.subject.gpu for hold in world.placed()] == [gpu]
    assert len(world.opened()) == 1
    incident = world.opened()[0].id
    assert [start.incident for start in world.ordered(START)[3:]] == [incident]
    assert [drain.subject.replica for drain in world.ordered(DRAIN)] == [old]
    assert world.ordered(STOP) == []
    assert sorted(r.deployment for r in world.core.view().replicas if r.state == "ready") == ["chat", "chat", "pair"]


def test_the_story_is_told_in_order(world: World) -> None:
    drill(world)
    story = [(line.of, line.state) for line in world.actions() if line.incident is not None]
    assert story == [
        (START, ActionState.ORDERED),
        (START, ActionState.RUNNING),
        (START, ActionState.DONE),
        (DRAIN, ActionState.ORDERED),
        (DRAIN, ActionState.RUNNING),
        (DRAIN, ActionState.DONE),
        (REBOOT, ActionState.WAITING),
    ]


def test_lines_of_one_decision_come_by_kind(node: Node, world: World) -> None:
    event = node.hit(node.gpus[0], "xid:79", world.now)
    before = len(world.lines)
    world.run(2)
    said = world.lines[before:]
    ranks = [
        KINDS.index(type(line)) for line in said[: next(n for n, x in enumerate(said) if isinstance(x, ActionLine)) + 1]
    ]
    assert ranks == sorted(ranks)
    assert isinstance(said[0], EventLine)
    assert said[0].event.id == event.id


def test_the_agents_fence_is_confirmed_and_replaced(world: World) -> None:
    drill(world)
    holds = [(line.owner, line.op) for line in world.lines if isinstance(line, HoldLine)]
    assert holds == [("agent:n1", "placed"), ("policy", "placed"), ("agent:n1", "lifted")]


def test_a_fence_that_is_told_after_its_event_is_replaced_as_well(node: Node, world: World) -> None:
    node.hit(node.gpus[0], "xid:79", world.now, fence=True)
    node.spool.reverse()
    world.run(10)
    assert [hold.owner for hold in world.core.view().holds] == ["policy"]
    assert len(world.placed("agent:n1")) == 1


def test_the_replacement_is_ready_before_the_old_replica_drains(world: World) -> None:
    drill(world)
    done = next(line.at for line in world.actions(START) if line.incident and line.state is ActionState.DONE)
    assert world.ordered(DRAIN)[0].at >= done


def test_the_old_replica_drains_and_stops(world: World) -> None:
    old = world.replica_on(world.nodes["n1"].gpus[0])
    drill(world)
    words = [line.to for line in world.lines if isinstance(line, StateLine) and line.subject.replica == old]
    assert words == ["starting", "ready", "degraded", "draining", "stopped"]


def test_the_reboot_waits_and_names_all_that_it_would_take(world: World) -> None:
    gpu = drill(world)
    reboot = world.actions(REBOOT)[-1]
    assert reboot.state is ActionState.WAITING
    assert reboot.subject == Subject(node="n1")
    others = {subject.gpu for subject in reboot.disrupts if subject.gpu}
    assert others == set(world.nodes["n1"].gpus) - {gpu}
    assert {subject.replica for subject in reboot.disrupts if subject.replica} == {
        replica.replica for replica in world.core.view().replicas
    }


def test_the_other_seven_stay_in_service(world: World) -> None:
    gpu = drill(world)
    gpus = [each for each in world.core.view().nodes[0].gpus if each.uuid != gpu]
    assert {(each.state, each.phase, each.holds) for each in gpus} == {("healthy", "in_service", ())}
    assert world.core.view().counts == {
        "total": 8, "in_service": 7, "free": 3, "unhealthy": 1, "stranded": 0, "overcommitted": 0,
    }  # fmt: skip


def test_an_application_fault_is_an_event_and_nothing_else(node: Node, world: World) -> None:
    before = len(world.lines)
    node.hit(node.gpus[0], "xid:13", world.now, pid=4242)
    world.run(60)
    assert [type(line) for line in world.lines[before:]] == [EventLine]


def test_a_member_of_a_pair_strands_the_other_until_the_replica_is_elsewhere(node: Node, world: World) -> None:
    old = world.replica_on(node.gpus[2])
    assert world.replica_on(node.gpus[3]) == old
    node.hit(node.gpus[2], "xid:79", world.now, fence=True)
    world.run(2)
    stranded = [gpu.uuid for gpu in world.core.view().nodes[0].gpus if gpu.stranded]
    assert stranded == [node.gpus[3]]
    world.run(40)
    words = [line.to for line in world.lines if isinstance(line, StateLine) and line.subject.replica == old]
    assert words == ["starting", "ready", "stranded", "draining", "stopped"]
    assert len(world.opened()) == 1
    assert [hold.subject.gpu for hold in world.placed()] == [node.gpus[2]]
    new = next(replica for replica in world.core.view().replicas if replica.deployment == "pair")
    assert new.state == "ready"
    assert not set(new.gpus) & {node.gpus[2], node.gpus[3]}
    assert world.replica_on(node.gpus[3]) is None
    assert world.gpu(node.gpus[3]).placeable


def test_a_fault_while_the_controller_is_down_has_the_same_end(world: World) -> None:
    node = world.nodes["n1"]
    world.down = True
    node.hit(node.gpus[0], "xid:79", world.now, fence=True)
    node.hit(node.gpus[0], "gpu_lost", world.now + 2)
    world.run(60)
    world.down = False
    world.restart()
    world.run(60)
    assert len(world.opened()) == 1
    assert [hold.subject.gpu for hold in world.placed()] == [node.gpus[0]]
    assert len([start for start in world.ordered(START) if start.incident]) == 1
    assert len(world.ordered(DRAIN)) == 1
    assert world.actions(REBOOT)[-1].state is ActionState.WAITING


def test_reports_that_come_twice_change_nothing(node: Node, world: World) -> None:
    node.hit(node.gpus[0], "xid:79", world.now, fence=True)
    world.run(40, twice=True)
    assert len([line for line in world.lines if isinstance(line, EventLine)]) == 1
    assert len(world.placed()) == len(world.placed("agent:n1")) == len(world.opened()) == 1
    assert len(world.ordered(START)) == 4
    assert len(world.ordered(DRAIN)) == 1


def test_an_older_report_after_the_fault_is_over_opens_nothing(node: Node, world: World) -> None:
    node.hit(node.gpus[0], "xid:79", world.now, fence=True)
    old = list(node.spool)
    world.run(40)
    node.clear(node.gpus[0], world.now)
    world.run(10)
    before = len(world.lines)
    node.spool += old
    world.run(10)
    assert world.lines[before:] == []


def test_the_cause_of_a_lost_gpu_is_the_root_in_either_order(node: Node, world: World) -> None:
    node.hit(node.gpus[0], "gpu_lost", world.now)
    world.run(4)
    node.hit(node.gpus[0], "xid:79", world.now)
    world.run(30)
    incident = world.core.view().incidents[0]
    assert (incident.code, len(incident.events)) == ("xid:79", 2)
    assert len(world.opened()) == 1
    assert len(world.placed()) == 1


def test_a_cleared_fault_is_closed_lifted_and_released_and_nothing_moves_back(node: Node, world: World) -> None:
    gpu = drill(world)
    node.clear(gpu, world.now)
    before = len(world.lines)
    world.run(60)
    said = world.lines[before:]
    assert [type(line) for line in said] == [
        ConditionLine, IncidentLine, StateLine, HoldLine, ActionLine, ActionLine,
    ]  # fmt: skip
    assert [(line.of, line.state) for line in said if isinstance(line, ActionLine)] == [
        (REBOOT, ActionState.CANCELLED),
        (ActionKind.RELEASE, ActionState.DONE),
    ]
    assert world.gpu(gpu).state == "healthy"
    assert world.replica_on(gpu) is None


def _reference(fault: int) -> World:
    world = World([Node("n1")], (CHAT, PAIR))
    world.run(12)
    drill(world, fault)
    return world


@pytest.mark.parametrize("fault", [0, 2], ids=["chat", "pair"])
def test_a_controller_that_dies_after_any_line_comes_to_the_same_end(fault: int) -> None:
    reference = _reference(fault)
    for cut in range(1, len(reference.lines) + 1):
        world = World([Node("n1")], (CHAT, PAIR))
        world.crash_at = cut
        world.run(12)
        drill(world, fault)
        world.run(4)
        assert end_of(world) == end_of(reference), f"after line {cut}: {reference.lines[cut - 1]}"
        orders = [line.id for line in world.ordered()]
        assert len(orders) == len(set(orders)), f"after line {cut} an order was given twice"


def test_a_fold_of_the_lines_is_the_same_state(world: World) -> None:
    drill(world)
    world.run(60)  # the last reading of the lost GPU is no longer fresh: readings are heard, not folded
    before = world.core.view()
    desired = world.core.desired("n1")
    world.restart()
    assert world.core.desired("n1") is None
    for stimulus in world.nodes["n1"].report(world.now):
        assert world.tell(stimulus) == []
    assert world.core.view() == before
    assert world.core.desired("n1") == desired


@pytest.mark.parametrize("after_s", [1, 2, 3])
def test_a_replacement_that_falls_while_it_starts_is_replaced_too(world: World, after_s: int) -> None:
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:79", world.now, fence=True)
    world.run(after_s)
    target = world.ordered(START)[-1].target
    assert target is not None
    node.hit(target.gpus[0], "xid:79", world.now, fence=True)
    world.run(60)
    replicas = [(r.deployment, r.state) for r in world.core.view().replicas]
    assert sorted(replicas) == [("chat", "ready"), ("chat", "ready"), ("pair", "ready")]
    assert world.replica_on(node.gpus[0]) is None
    assert {hold.subject.gpu for hold in world.placed()} == {node.gpus[0], target.gpus[0]}
    assert not [line for line in world.core.view().actions if line.of is START]
