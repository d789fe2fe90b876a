"""Replicas that others manage: their owner is asked to end them, when that helps and when it may be."""

import msgspec
import pytest

from controller.core.fleet.stimuli import Arrived, Deployment, Managed, Managing, Replicas, Stimulus
from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import ActionLine
from vocab.messages import ActionItem, ReplicaStatus
from vocab.observations import Member, Owner
from vocab.states import ActionKind, ActionState

POD = Owner(kind="kubernetes", name="chat-7d9f8-abcde")
DRAIN, STOP = ActionKind.DRAIN, ActionKind.STOP_REPLICA
KUBERNETES = Managing(by="kubernetes", ok=True, why="", nodes=True, ends=True)
HOOK = Managing(by="hook", ok=True, why="", ends=True)


class Foreign(Node):
    """A node on which engines of others run, by their names."""

    def __init__(self, name: str, gpus: int) -> None:
        super().__init__(name, gpus)
        self.found: dict[str, ReplicaStatus] = {}

    def report(self, now: float) -> list[Stimulus]:
        return [
            msgspec.structs.replace(one, statuses=(*one.statuses, *self.found.values()))
            if isinstance(one, Replicas)
            else one
            for one in super().report(now)
        ]

    def serve(self, name: str, gpu: int, owner: Owner = POD) -> None:
        self.found[name] = ReplicaStatus(
            replica=name, deployment="chat", members=(Member(node=self.name, gpu=self.gpus[gpu], rank=0),),
            phase="ready", ready=True, admitting=True, observed=True, owner=owner, engine="vllm", model="chat",
        )  # fmt: skip


@pytest.fixture
def node() -> Foreign:
    return Foreign("n1", 4)


def world_of(node: Foreign, manager: Managing, *, min_ready: int = 1, managed_by: str = "kubernetes") -> World:
    node.serve("a", 0)
    node.serve("b", 1)
    chat = Deployment(name="chat", replicas=2, min_ready=min_ready, managed_by=managed_by)
    world = World([node], [chat])
    world.tell(manager)
    world.run(12)
    return world


def closed(world: World, *gpus: str, grain: str = "gpu", other: str = "") -> None:
    world.tell(Managed(node="n1", by="kubernetes", grain=grain, ours=gpus, other=other))


def drains(world: World, replica: str = "a") -> list[ActionLine]:
    return [line for line in world.actions(DRAIN) if line.subject.replica == replica]


def evictions(world: World) -> list[str | None]:
    return [order.replica for order in world.core.orders() if order.replica is not None]


def test_its_gpu_is_closed_before_a_pod_is_evicted(node: Foreign) -> None:
    world = world_of(node, KUBERNETES)
    closed(world)
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(6)
    assert [(order.gpu, order.replica) for order in world.core.orders()] == [(node.gpus[0], None)]
    assert [line.why for line in drains(world)] == ["kubernetes must keep new work off that GPU first"]
    closed(world, node.gpus[0])
    world.run(6)
    assert evictions(world) == ["a"]
    (order,) = [order for order in world.core.orders() if order.replica]
    assert (order.owner, order.node, order.gpus) == (POD, "n1", (node.gpus[0],))


def test_once_the_pod_has_gone_the_drain_is_done_and_the_gpu_repaired(node: Foreign) -> None:
    world = world_of(node, KUBERNETES)
    node.obeys = True
    closed(world, node.gpus[0])
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(6)
    del node.found["a"]
    world.run(20)
    assert [line.state for line in drains(world)] == [ActionState.ORDERED, ActionState.DONE]
    assert evictions(world) == []
    assert ActionState.DONE in [line.state for line in world.actions(ActionKind.RESET_GPU)]


def test_the_floor_keeps_the_last_ones(node: Foreign) -> None:
    world = world_of(node, KUBERNETES, min_ready=2)
    closed(world, node.gpus[0])
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(20)
    assert evictions(world) == []
    assert drains(world)[-1].budget is not None


def test_where_nothing_can_be_kept_off_nobody_is_evicted(node: Foreign) -> None:
    world = world_of(node, KUBERNETES)
    closed(world, grain="none")
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(20)
    assert world.core.orders() == ()
    assert "it may not keep work off that" in drains(world)[-1].why


def test_nobody_is_evicted_while_somebody_else_is_at_work_or_all_is_paused(node: Foreign) -> None:
    world = world_of(node, KUBERNETES)
    closed(world, node.gpus[0])
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(6)
    assert evictions(world) == ["a"]
    closed(world, node.gpus[0], other="NVSentinel is at work on it")
    assert evictions(world) == []
    closed(world, node.gpus[0])
    world.ask("pause", reason="stop")
    assert evictions(world) == []
    world.ask("resume", reason="go")
    assert evictions(world) == ["a"]


def test_an_owner_that_does_not_end_it_is_not_asked_for_ever_and_nothing_is_stopped(node: Foreign) -> None:
    world = world_of(node, KUBERNETES)
    closed(world, node.gpus[0])
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(2 * 3600)
    assert [line.state for line in drains(world)] == [ActionState.ORDERED, ActionState.TIMED_OUT, ActionState.WAITING]
    assert "a person must" in drains(world)[-1].why
    assert world.actions(STOP) == []
    assert evictions(world) == []


def test_a_hook_is_asked_for_deployments_that_name_it(node: Foreign) -> None:
    world = world_of(node, HOOK, managed_by="hook")
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(6)
    assert [(order.by, order.replica, order.deployment) for order in world.core.orders()] == [("hook", "a", "chat")]


def test_a_hook_that_says_no_is_not_asked_again(node: Foreign) -> None:
    world = world_of(node, HOOK, managed_by="hook")
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(6)
    action = world.core.orders()[0].action
    said = ActionItem(at=0.0, node="n1", id=action.id, of=action.of, token=action.token, state=ActionState.REFUSED)
    world.tell(Arrived(node="n1", item=msgspec.structs.replace(said, error="never on Fridays")))
    world.run(60)
    assert world.core.orders() == ()
    assert "never on Fridays" in drains(world)[-1].why


def test_one_that_is_started_there_again_is_asked_again_but_not_for_ever(node: Foreign) -> None:
    world = world_of(node, HOOK, managed_by="hook")
    node.hit(node.gpus[0], "xid:95", world.now)
    for _ in range(6):
        world.run(10)
        node.found.pop("a", None)
        world.run(10)
        node.serve("a", 0)
    world.run(10)
    assert [line.state for line in drains(world)].count(ActionState.DONE) == 3
    assert any("started it there again 3 times" in line.why for line in drains(world))


def test_for_none_a_person_is_told(node: Foreign) -> None:
    world = world_of(node, HOOK, managed_by="none")
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(20)
    assert world.core.orders() == ()
    assert [(line.state, line.why) for line in drains(world)] == [
        (ActionState.WAITING, "it was not started by us: its owner (kubernetes chat-7d9f8-abcde) must drain it")
    ]


def test_a_slurm_job_is_said_to_end_by_itself(node: Foreign) -> None:
    job = Owner(kind="slurm", name="job-12")
    node.serve("a", 0, job)
    world = World([node], [Deployment(name="chat", replicas=1, min_ready=0, managed_by="slurm")])
    world.tell(Managing(by="slurm", ok=True, why="", nodes=True, whole=True))
    world.tell(Managed(node="n1", by="slurm", ours=("n1",), busy=True))
    world.run(12)
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(20)
    assert drains(world)[-1].why == "it ends with its owner (slurm job-12): slurm gives n1 no new work"
