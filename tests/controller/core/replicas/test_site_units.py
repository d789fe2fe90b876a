"""Replicas of units that the site wrote: stopped through their node's agent for a fault, and started again after it."""

import msgspec
import pytest

from controller.core.fleet.stimuli import Arrived, Declared, Deployment
from tests.controller.core.replicas.test_found import NAME, UNIT, Shared
from tests.sim.world import World
from vocab.events import Event
from vocab.lines import Subject
from vocab.messages import ActionItem, NodeFacts, Order
from vocab.observations import Member
from vocab.states import ActionKind, ActionState, Level

GIVEN = ("vllm.service",)
LLAMA = Deployment(name="llama", replicas=1, min_ready=0, managed_by="systemd-unit", prestop_s=5.0, drain_s=60.0)


class Site(Shared):
    """Such a node. ``units``: what its root has named; ``done``: what its systemd was told."""

    units: tuple[str, ...] = GIVEN
    where: tuple[int, ...] = (0, 1)

    def __init__(self, name: str, gpus: int = 8, level: Level = Level.REPAIR) -> None:
        super().__init__(name, gpus, level)
        self.orders: list[Order] = []
        self.obeys = True
        self.refuses = False

    @property
    def done(self) -> list[str]:
        return [order.of.value for order in self.orders]

    def facts(self) -> NodeFacts:
        return msgspec.structs.replace(super().facts(), units=self.units)

    def _do(self, order: Order, now: float) -> None:
        if order.replica != NAME:
            super()._do(order, now)
            return
        self.answered.add(order.id)
        self.orders.append(order)
        if self.refuses:
            self._answer(order, ActionState.REFUSED, now, "not named here")
            return
        if order.of is ActionKind.DRAIN:
            self.serve()
        else:
            self.serve(*self.where, pid=len(self.orders) + 100)
        state = ActionState.DONE if order.of is ActionKind.RELEASE else ActionState.RUNNING
        self._answer(order, state, now)


@pytest.fixture
def node() -> Site:
    return Site("n1", 4)


@pytest.fixture
def world(node: Site) -> World:
    node.serve(*node.where)
    world = World([node], [LLAMA])
    world.run(12)
    return world


def test_a_fault_of_its_gpu_stops_it_and_the_release_starts_it_again(world: World, node: Site) -> None:
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(20)
    assert node.done == ["drain"]
    assert (node.orders[0].prestop_s, node.orders[0].drain_s) == (5.0, 60.0)
    world.run(900)  # reset, validated, probation
    assert node.done == ["drain", "release"]
    (last,) = [a for a in world.actions(ActionKind.RELEASE) if a.subject == Subject(replica=NAME)][-1:]
    assert last.state is ActionState.DONE
    assert {each.replica: each.state for each in world.core.view().replicas} == {NAME: "ready"}
    assert world.ordered(ActionKind.RESET_GPU)
    world.run(600)
    assert node.done == ["drain", "release"]


def test_it_stays_down_for_as_long_as_anything_is_held(world: World, node: Site) -> None:
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(20)
    world.ask("hold", gpu=node.gpus[1], reason="to be looked at")
    world.run(1200)
    assert node.done == ["drain"]
    world.ask("lift", gpu=node.gpus[1], reason="looked at")
    world.run(20)
    assert node.done == ["drain", "release"]


def test_what_root_has_not_named_waits_for_its_owner(world: World, node: Site) -> None:
    node.units = ("other@.service",)
    world.run(4)
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(60)
    drains = [a for a in world.actions(ActionKind.DRAIN) if a.subject.replica == NAME]
    assert [(a.state, a.why) for a in drains] == [
        ("waiting", "it was not started by us: its owner (systemd-unit vllm.service, uid 1000) must drain it")
    ]
    assert node.done == []


@pytest.mark.parametrize("managed_by", ["none", "hook"])
def test_a_deployment_that_names_another_owner_is_that_owners(world: World, node: Site, managed_by: str) -> None:
    world.tell(Declared(deployment=msgspec.structs.replace(LLAMA, managed_by=managed_by)))
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(60)
    assert node.done == []


@pytest.mark.parametrize("level", [Level.OBSERVE, Level.FENCE])
def test_below_its_level_nothing_is_done_and_what_would_be_is_said(node: Site, level: Level) -> None:
    node.level = level
    node.serve(*node.where)
    world = World([node], [LLAMA])
    world.run(12)
    node.hit(node.gpus[0], "xid:95", world.now)
    node.complain(NAME, "replica_stalled", world.now, suspects=[node.gpus[0]])
    world.run(300)
    assert node.done == []
    assert {a.state for a in world.actions(ActionKind.DRAIN) if a.subject.replica == NAME} <= {ActionState.WOULD}


def test_the_floor_of_its_deployment_keeps_it(world: World, node: Site) -> None:
    world.tell(Declared(deployment=msgspec.structs.replace(LLAMA, min_ready=1)))
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(60)
    assert node.done == []
    waiting = [a for a in world.actions(ActionKind.DRAIN) if a.subject.replica == NAME][-1]
    assert (waiting.state, waiting.budget is not None) == (ActionState.WAITING, True)


def test_a_unit_that_runs_another_replica_on_healthy_gpus_is_not_stopped(world: World, node: Site) -> None:
    other = msgspec.structs.replace(
        node.found[0], replica="vllm.service:8001@n1", members=(Member(node="n1", gpu=node.gpus[3], rank=0),)
    )
    node.found = (*node.found, other)
    world.run(4)
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(30)
    assert node.done == []
    why = [a.why for a in world.actions(ActionKind.DRAIN) if a.subject.replica == NAME][-1]
    assert why == "vllm.service also runs vllm.service:8001@n1: a person must drain it"


def test_what_a_person_drains_without_a_hold_stays_down_until_a_person_starts_it(world: World, node: Site) -> None:
    world.ask("drain", replica=NAME, reason="maintenance")
    world.run(600)
    assert node.done == ["drain"]


def test_a_gpu_that_a_person_drains_has_its_unit_back_once_the_hold_is_lifted(world: World, node: Site) -> None:
    world.ask("drain", gpu=node.gpus[0], reason="maintenance")
    world.run(60)
    assert node.done == ["drain"]
    world.ask("lift", gpu=node.gpus[0], reason="over")
    world.run(20)
    assert node.done == ["drain", "release"]


def test_a_node_that_does_not_stop_it_leaves_it_to_a_person(world: World, node: Site) -> None:
    node.refuses = True
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(120)
    assert node.done == ["drain"]
    why = [a.why for a in world.actions(ActionKind.DRAIN) if a.subject.replica == NAME][-1]
    assert why.startswith("its owner did not end it: not named here")


def test_a_controller_that_restarts_meanwhile_starts_it_again_once(world: World, node: Site) -> None:
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(20)
    assert node.done == ["drain"]
    world.restart()
    world.run(1200)
    world.restart()
    world.run(600)
    assert node.done == ["drain", "release"]


@pytest.mark.parametrize("keep_back", range(1, 12))
def test_a_controller_that_is_killed_between_two_lines_orders_each_once(keep_back: int) -> None:
    node = Site("n1", 4)
    node.serve(*node.where)
    world = World([node], [LLAMA])
    world.run(12)
    node.hit(node.gpus[0], "xid:95", world.now)
    world.crash_at = len(world.lines) + keep_back
    world.run(1300)
    assert node.done == ["drain", "release"]


def test_its_death_is_its_units_affair(world: World, node: Site) -> None:
    node.serve()
    world.run(120)
    assert node.done == []
    assert not world.ordered(ActionKind.RESTART_REPLICA, ActionKind.RELEASE)


def stalled(world: World, node: Site, **more: object) -> Event:
    node.found = (msgspec.structs.replace(node.found[0], stepping=False, running=1),)
    return node.complain(NAME, "replica_stalled", world.now, **more)


def test_one_that_stands_still_is_restarted_with_evidence(world: World, node: Site) -> None:
    event = stalled(world, node, witness="canary")
    world.run(120)
    assert node.done == ["restart_replica"]
    node.content(event, world.now)
    world.run(10)
    assert world.actions(ActionKind.RESTART_REPLICA)[-1].state is ActionState.DONE


def test_without_evidence_its_owner_must_restart_it(world: World, node: Site) -> None:
    stalled(world, node)
    world.run(300)
    assert node.done == []
    last = world.actions(ActionKind.RESTART_REPLICA)[-1]
    assert last.why == "nothing but its silence speaks against it: its owner must restart it"


def test_an_end_within_its_restart_is_no_end_of_the_restart(world: World, node: Site) -> None:
    stalled(world, node, witness="canary")
    node.where = ()  # it takes a while to be back
    world.run(140)
    assert node.done == ["restart_replica"]
    assert world.actions(ActionKind.RESTART_REPLICA)[-1].state in {ActionState.ORDERED, ActionState.RUNNING}
    node.serve(0, 1, pid=300)
    world.run(10)
    assert world.actions(ActionKind.RESTART_REPLICA)[-1].state is ActionState.DONE


def test_another_node_cannot_say_that_it_was_started(world: World, node: Site) -> None:
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(20)
    node.busy = True
    world.run(900)
    (order,) = world.ordered(ActionKind.RELEASE)[-1:]
    item = ActionItem(
        at=world.now, node="n2", id=order.id, of=order.of, token=order.token, state=ActionState.DONE, replica=NAME
    )
    assert UNIT.name in NAME
    assert world.tell(Arrived(node="n2", item=item)) == []
