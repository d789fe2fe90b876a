"""A fault's way: drains and floors, repairs and rungs, what a person says to it."""

import pytest

from controller.core.fleet.settings import Limits, Settings
from controller.core.fleet.stimuli import Declared, Deployment
from tests.controller.core.conftest import MakeWorld
from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import NoteLine, StateLine
from vocab.states import PHASE_MOVES, REPLICA_MOVES, ActionKind, ActionState, Phase, ReplicaState

IDLE = Deployment(name="idle", replicas=0)
WHOLE = Deployment(name="chat", replicas=8, min_ready=6)
DRAIN, RESET, REBOOT = ActionKind.DRAIN, ActionKind.RESET_GPU, ActionKind.REBOOT_NODE


def states(world: World, *kinds: ActionKind) -> list[ActionState]:
    return [line.state for line in world.actions(*kinds)]


def test_without_a_spare_drains_stop_at_the_floor(make_world: MakeWorld) -> None:
    world = make_world(WHOLE)
    node = world.nodes["n1"]
    for gpu in node.gpus[:4]:
        node.hit(gpu, "xid:95", world.now, fence=True)
    world.run(60)
    assert len(world.ordered(DRAIN)) == 2
    waiting = [line for line in world.actions(DRAIN) if line.state is ActionState.WAITING]
    assert len(waiting) == 2
    assert {(line.budget.limit, line.budget.used) for line in waiting if line.budget} == {(6, 5)}
    alive = [process for process in node.processes.values() if process.exit is None]
    assert len(alive) == 6


def test_a_waiting_drain_goes_on_once_a_spare_is_there(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=8, min_ready=8))
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:95", world.now, fence=True)
    world.run(20)
    assert states(world, DRAIN) == [ActionState.WAITING]
    spare = Node("n2", 1)
    world.nodes["n2"] = spare
    world.run(60)
    assert states(world, DRAIN)[-1] is ActionState.DONE
    assert sum(replica.state == "ready" for replica in world.core.view().replicas) == 8


def test_no_floor_keeps_a_replica_on_a_lost_gpu(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="pair", replicas=1, gpus_per_replica=8, min_ready=1))
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:79", world.now, fence=True)
    world.run(20)
    assert [drain.why for drain in world.ordered(DRAIN)] == ["no GPU is free for a replacement; its own is lost"]
    assert states(world, DRAIN)[-1] is ActionState.DONE


def test_a_replica_that_died_with_its_gpu_is_not_waited_for(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=8, min_ready=8))
    node = world.nodes["n1"]
    victim = world.replica_on(node.gpus[0])
    node.hit(node.gpus[0], "xid:79", world.now, fence=True)
    node.crash(str(victim), reason="killed by its GPU")
    world.run(20)
    assert states(world, DRAIN) == [ActionState.ORDERED, ActionState.DONE]
    assert world.replica_on(node.gpus[0]) is None
    assert states(world, REBOOT) == [ActionState.WAITING]


def test_a_drain_that_does_not_end_is_cut_off(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=1, drain_s=2, kill_s=1))
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:95", world.now, fence=True)
    world.run(8)
    node.silent = True  # it does not get the order
    world.run(10)
    node.silent = False
    world.run(20)
    assert ActionState.TIMED_OUT in states(world, DRAIN) or ActionState.DONE in states(world, DRAIN)
    assert world.replica_on(node.gpus[0]) is None


def test_a_cancelled_drain_is_not_a_finished_one(world: World, node: Node) -> None:
    old = world.replica_on(node.gpus[0])
    node.hit(node.gpus[0], "xid:95", world.now, fence=True)
    while not world.ordered(DRAIN):
        world.run(2)
    world.ask("cancel", action=world.ordered(DRAIN)[0].id, reason="I watch it")
    before = len(world.ordered(RESET, REBOOT))
    world.run(60)
    assert states(world, DRAIN)[-1] is ActionState.CANCELLED
    assert len(world.ordered(RESET, REBOOT)) == before == 0
    assert old in {replica.replica for replica in world.core.view().replicas}


def test_a_fault_that_ends_while_its_replica_drains_calls_the_drain_off(world: World, node: Node) -> None:
    node.hit(node.gpus[0], "xid:95", world.now, fence=True)
    while not world.ordered(DRAIN):
        world.run(2)
    node.clear(node.gpus[0], world.now)
    world.run(60)
    assert ActionState.CANCELLED in states(world, DRAIN) or ActionState.DONE in states(world, DRAIN)
    assert states(world, RESET, REBOOT) == []
    assert world.core.view().incidents == ()
    assert sum(replica.state == "ready" for replica in world.core.view().replicas) == 3


def test_a_reset_is_ordered_for_an_empty_gpu_and_a_refusal_is_not_repeated(make_world: MakeWorld) -> None:
    world = make_world(IDLE)
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(300)
    assert states(world, RESET) == [ActionState.ORDERED, ActionState.REFUSED]
    notes = [line for line in world.lines if isinstance(line, NoteLine) and line.code == "needs_person"]
    assert len(notes) == 1
    assert world.gpu(node.gpus[0]).state == "cordoned"
    (incident,) = world.core.view().incidents
    assert world.core.view().halted == {incident.id: notes[0].text.removeprefix(f"{incident.id}: ")}
    node.clear(node.gpus[0], world.now)
    world.run(60)
    assert world.core.view().halted == {}


def test_a_repaired_gpu_is_validated_watched_and_released(make_world: MakeWorld) -> None:
    world = make_world(IDLE)
    node = world.nodes["n1"]
    node.obeys = True
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(30)
    assert states(world, RESET)[-1] is ActionState.DONE
    assert states(world, ActionKind.VALIDATE)[-1] is ActionState.DONE
    assert world.gpu(node.gpus[0]).phase == "probation"
    assert not world.gpu(node.gpus[0]).placeable
    world.run(560)
    assert world.gpu(node.gpus[0]).phase == "probation"
    world.run(60)
    assert world.gpu(node.gpus[0]).placeable
    assert states(world, ActionKind.RELEASE) == [ActionState.DONE]


def test_a_fault_in_probation_goes_the_sick_way_again_and_up_the_ladder(make_world: MakeWorld) -> None:
    world = make_world(IDLE)
    node = world.nodes["n1"]
    node.obeys = True
    for _ in range(3):
        node.hit(node.gpus[0], "xid:95", world.now)
        world.run(100)
    assert len(world.ordered(RESET)) == 2
    assert states(world, REBOOT)[0] is ActionState.ORDERED, "the other GPUs of the node are empty"
    assert len(world.opened()) == 1


def test_a_reset_that_takes_a_neighbour_waits_for_a_person(make_world: MakeWorld) -> None:
    pinned = Deployment(name="chat", gpus=("GPU-n1-1",))
    world = World([Node("n1", 8, group=2)], (pinned,))
    world.run(12)
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(10)
    reset = world.actions(RESET)[-1]
    assert reset.state is ActionState.WAITING
    assert reset.budget is None
    assert [subject.gpu for subject in reset.disrupts if subject.gpu] == [node.gpus[1]]
    assert [subject.replica for subject in reset.disrupts if subject.replica] == [world.replica_on(node.gpus[1])]


def test_a_reset_takes_a_neighbour_that_is_empty(make_world: MakeWorld) -> None:
    world = World([Node("n1", 8, group=2)], (IDLE,))
    world.run(12)
    node = world.nodes["n1"]
    node.obeys = True
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(4)
    assert [[subject.gpu for subject in reset.disrupts] for reset in world.ordered(RESET)] == [[node.gpus[1]]]


def test_a_reset_that_waited_goes_once_its_neighbour_is_empty(make_world: MakeWorld) -> None:
    pinned = Deployment(name="chat", gpus=("GPU-n1-1",))
    world = World([Node("n1", 8, group=2)], (pinned,))
    world.run(12)
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(10)
    assert world.ordered(RESET) == []
    world.tell(Declared(deployment=Deployment(name="chat", replicas=0, min_ready=0, gpus=("GPU-n1-1",))))
    world.run(20)
    assert len(world.ordered(RESET)) == 1


def test_an_approved_reboot_is_ordered_and_its_refusal_is_told(world: World, node: Node) -> None:
    node.hit(node.gpus[0], "xid:79", world.now, fence=True)
    world.run(40)
    waiting = world.actions(REBOOT)[-1]
    lines = world.ask("approve", action=waiting.id, reason="tonight", force=True)
    [said] = [line for line in lines if getattr(line, "id", None) == waiting.id]
    assert said.state is ActionState.ORDERED
    assert said.token != waiting.token
    assert "ada" in said.why
    orders = world.core.desired("n1").orders
    assert [(order.of, order.gpus) for order in orders] == [(REBOOT, node.gpus[1:])]
    world.run(20)
    assert states(world, REBOOT) == [ActionState.WAITING, ActionState.ORDERED, ActionState.REFUSED]
    assert world.core.view().incidents != ()


def test_a_reboot_that_nobody_answers_times_out_and_is_asked_for_again(world: World, node: Node) -> None:
    node.hit(node.gpus[0], "xid:79", world.now, fence=True)
    world.run(40)
    node.answered.add(world.actions(REBOOT)[-1].id)
    world.ask("approve", gpu=node.gpus[0], force=True)
    world.run(1300)
    assert states(world, REBOOT)[2] is ActionState.TIMED_OUT
    assert world.actions(REBOOT)[-1].state is ActionState.WAITING
    assert world.actions(REBOOT)[-1].attempt == 2


def test_one_reboot_covers_two_faults_of_a_node(world: World, node: Node) -> None:
    for gpu in node.gpus[:2]:
        node.hit(gpu, "xid:79", world.now, fence=True)
    world.run(60)
    first, second = {line.id for line in world.actions(REBOOT)}
    assert set(states(world, REBOOT)) == {ActionState.WAITING}
    node.answered.update({first, second})
    world.ask("approve", action=first, force=True)
    world.run(4)
    covered = [line for line in world.actions(REBOOT) if line.state is ActionState.COVERED]
    assert [(line.id, line.covered_by) for line in covered] == [(second, first)]
    node.reboot(world.now)
    world.run(60)
    assert [line.state for line in world.actions(REBOOT) if line.id == first][-1] is ActionState.DONE
    assert len(world.ordered(REBOOT)) == 1
    world.restart()
    world.run(60)
    assert len(world.ordered(REBOOT)) == 1


def test_nothing_is_approved_during_a_pause(world: World, node: Node) -> None:
    node.hit(node.gpus[0], "xid:79", world.now, fence=True)
    world.run(40)
    world.ask("pause", reason="no")
    [said] = world.ask("approve", gpu=node.gpus[0])
    assert isinstance(said, NoteLine)
    assert said.code == "refused"
    assert world.ordered(REBOOT) == []


def test_a_board_that_needs_the_vendor_is_quarantined_until_a_person_releases_it(make_world: MakeWorld) -> None:
    world = make_world(IDLE)
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "remap_failed", world.now)
    world.run(10)
    assert world.gpu(node.gpus[0]).state == "quarantined"
    world.ask("release", gpu=node.gpus[0], reason="the vendor looked")
    assert world.core.view().holds == ()
    assert world.core.view().incidents == ()
    assert world.gpu(node.gpus[0]).state == "failed", "its condition stands until a person says it is healthy"
    world.ask("set_healthy", gpu=node.gpus[0], reason="new HBM")
    assert world.gpu(node.gpus[0]).state == "healthy"


def test_a_quarantine_that_a_pause_forbade_follows_the_resume(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", gpus=("GPU-n1-1",)))
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:79", world.now)
    world.run(4)
    world.ask("pause")
    node.hit(node.gpus[0], "remap_failed", world.now)
    world.run(4)
    assert world.actions(ActionKind.QUARANTINE)[-1].state is ActionState.WOULD
    world.ask("resume")
    assert world.gpu(node.gpus[0]).state == "quarantined"


def test_a_person_drains_a_gpu_and_its_replica_moves(world: World, node: Node) -> None:
    old = world.replica_on(node.gpus[0])
    world.ask("drain", gpu=node.gpus[0], reason="a new fan")
    world.run(40)
    assert states(world, DRAIN) == [ActionState.WAITING, ActionState.ORDERED, ActionState.RUNNING, ActionState.DONE]
    assert world.replica_on(node.gpus[0]) is None
    assert old not in {replica.replica for replica in world.core.view().replicas}
    assert [hold.owner for hold in world.core.view().holds] == ["operator"]
    assert sum(replica.state == "ready" for replica in world.core.view().replicas) == 3


def test_a_crash_loop_is_replaced_and_backs_off_after_three(world: World, node: Node) -> None:
    for _ in range(5):
        chat = [r.replica for r in world.core.view().replicas if r.deployment == "chat" and r.state == "ready"]
        if len(chat) == 2:
            node.crash(chat[-1])
        world.run(16)
    starts = [line for line in world.ordered(ActionKind.START_REPLICA) if line.deployment == "chat"]
    assert len(starts) == 2 + 2
    assert world.actions(ActionKind.START_REPLICA)[-1].state is ActionState.WAITING
    assert world.actions(ActionKind.START_REPLICA)[-1].budget.limit == 3
    world.run(620)
    assert sum(r.state == "ready" and r.deployment == "chat" for r in world.core.view().replicas) == 2


def test_fewer_replicas_wanted_drains_the_youngest(world: World) -> None:
    oldest = next(r.replica for r in world.core.view().replicas if "GPU-n1-0" in r.gpus)
    world.tell(Declared(deployment=Deployment(name="chat", replicas=1, min_ready=1)))
    world.run(20)
    assert [r.replica for r in world.core.view().replicas if r.deployment == "chat"] == [oldest]


def test_replicas_that_were_there_before_are_adopted(world: World) -> None:
    world.lines.clear()
    world.restart()
    world.run(60)
    assert world.ordered() == []
    assert len(world.core.view().replicas) == 3
    assert len(world.core.desired("n1").replicas) == 3


def test_an_adopted_replica_is_remembered_over_a_restart_and_buried_when_it_is_gone(world: World, node: Node) -> None:
    world.lines.clear()
    world.restart()
    world.run(4)
    world.restart()
    node.silent = True
    world.run(60)
    assert world.ordered() == [], "its node is silent: nothing is started in its stead"
    node.silent = False
    gone = next(iter(node.processes))
    del node.processes[gone]
    world.run(2)
    assert [line.state for line in world.actions(ActionKind.STOP_REPLICA)] == [ActionState.DONE]
    assert gone not in {replica.replica for replica in world.core.view().replicas}


@pytest.mark.parametrize("fault", ["xid:79", "xid:95", "remap_failed"])
def test_every_move_of_a_word_is_one_that_the_tables_allow(world: World, node: Node, fault: str) -> None:
    node.obeys = True
    for gpu in (node.gpus[0], node.gpus[2], node.gpus[7]):
        node.hit(gpu, fault, world.now, fence=True)
        world.run(6)
        node.clear(gpu, world.now)
        world.run(14)
        node.hit(gpu, fault, world.now, fence=True)
        world.run(60)
    phases = {phase.value for phase in Phase}
    for line in world.lines:
        if isinstance(line, StateLine) and line.subject.replica and line.from_:
            assert ReplicaState(line.to) in REPLICA_MOVES[ReplicaState(line.from_)], line
        if isinstance(line, StateLine) and line.subject.gpu:
            before = Phase(line.from_) if line.from_ in phases else Phase.IN_SERVICE
            after = Phase(line.to) if line.to in phases else Phase.IN_SERVICE
            assert before is after or after in PHASE_MOVES[before], line


def test_repairs_are_limited_in_number(make_world: MakeWorld) -> None:
    world = make_world(IDLE, nodes=3, settings=Settings(limits=Limits(repairs=1, cordons_ratio=1.0)))
    for node in world.nodes.values():
        node.answered = _Everything()
        node.hit(node.gpus[0], "xid:95", world.now)
    world.run(10)
    assert sorted(line.state for line in world.actions(RESET)) == [
        ActionState.ORDERED, ActionState.WAITING, ActionState.WAITING,
    ]  # fmt: skip


class _Everything(set[str]):
    """A node that hears orders and does nothing."""

    def __contains__(self, _: object) -> bool:
        return True
