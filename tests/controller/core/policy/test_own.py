"""A node speaks for itself: of another's GPUs, conditions and orders it can say nothing."""

import pytest
from msgspec.structs import replace

from controller.core.fleet.settings import Settings
from controller.core.fleet.stimuli import Arrived, Deployment, NodeReported, Replicas
from tests.sim.node import Node
from tests.sim.world import World
from vocab.events import Cleared, Event, rfc3339
from vocab.lines import ActionLine, ConditionLine, EventLine, HoldLine
from vocab.messages import ActionItem, ClearedItem, EventItem, FenceItem, NodeFacts, ReplicaStatus
from vocab.observations import GpuIdentity, Member
from vocab.states import ActionState


@pytest.fixture
def world() -> World:
    made = World([Node("n1", gpus=2), Node("n2", gpus=2)], (Deployment(name="idle", replicas=0),), Settings())
    made.run(6)
    return made


def fault(world: World, node: str) -> Event:
    """A fault of the node's first GPU, as the fleet has it."""
    world.nodes[node].hit(world.nodes[node].gpus[0], "xid:95", world.now)
    world.run(6)
    return [line.event for line in world.lines if isinstance(line, EventLine) and line.event.node == node][-1]


def test_a_fault_of_anothers_gpu_holds_nothing(world: World) -> None:
    told = fault(world, "n1")
    before = len(world.lines)
    lie = replace(told, id="another", gpu=world.nodes["n2"].gpus[0])
    world.tell(Arrived(node="n1", item=EventItem(lie)))
    world.run(6)
    said = world.lines[before:]
    assert not [line for line in said if getattr(line, "subject", None) and line.subject.gpu == lie.gpu]


def test_a_fence_of_anothers_gpu_is_none(world: World) -> None:
    other = world.nodes["n2"].gpus[0]
    world.tell(Arrived(node="n1", item=FenceItem(at=world.now, node="n1", gpu=other, op="placed", why="a lie")))
    assert not [line for line in world.lines if isinstance(line, HoldLine) and line.subject.gpu == other]


def test_anothers_condition_is_not_cleared(world: World) -> None:
    told = fault(world, "n2")
    for event in (told.id, None):
        cleared = Cleared(
            at=rfc3339(world.now), node="n1", boot_id=None, gpu=told.gpu if event is None else None,
            code=told.code, by="signal", event=event,
        )  # fmt: skip
        world.tell(Arrived(node="n1", item=ClearedItem(cleared)))
    assert not [line for line in world.lines if isinstance(line, ConditionLine) and line.state == "cleared"]


def test_anothers_order_does_not_end(world: World) -> None:
    world.nodes["n2"].hit(world.nodes["n2"].gpus[0], "xid:95", world.now)
    while not (orders := [line for line in world.lines if isinstance(line, ActionLine)]):
        world.run(1)
    action = orders[-1]
    assert action.state is ActionState.ORDERED
    lie = ActionItem(at=world.now, node="n1", id=action.id, of=action.of, token="", state=ActionState.FAILED)
    before = len(world.lines)
    world.tell(Arrived(node="n1", item=lie))
    ended = [line for line in world.lines[before:] if isinstance(line, ActionLine) and line.id == action.id]
    assert ActionState.FAILED not in {line.state for line in ended}


def test_a_node_is_heard_of_its_own_gpu_though_another_claims_it(world: World) -> None:
    claimed = [GpuIdentity(uuid=gpu, index=9, pci="0000:99:00") for gpu in world.nodes["n2"].gpus]
    facts = NodeFacts(node="n1", boot_id="boot", gpus=tuple(claimed))
    world.tell(NodeReported(facts=facts))
    told = fault(world, "n2")
    assert told.gpu == world.nodes["n2"].gpus[0]
    assert [line for line in world.lines if isinstance(line, ConditionLine) and line.subject.gpu == told.gpu]


def listed(world: World, name: str, *places: tuple[str, int], deployment: str = "chat") -> ReplicaStatus:
    """A replica that is said to serve on these GPUs."""
    members = tuple(
        Member(node=node, gpu=world.nodes[node].gpus[gpu], rank=rank) for rank, (node, gpu) in enumerate(places)
    )
    return ReplicaStatus(replica=name, deployment=deployment, members=members, phase="ready", ready=True)


def runs(world: World) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {each.replica: (each.node, each.gpus) for each in world.core.view().replicas}


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_a_replica_on_anothers_gpus_is_none_whatever_node_it_names(world: World, node: str) -> None:
    theirs = Member(node=node, gpu=world.nodes["n2"].gpus[0], rank=0)
    lie = replace(listed(world, "ghost", ("n1", 0)), members=(theirs,))
    mixed = replace(lie, replica="mixed", members=(replace(theirs, node="n1", gpu=world.nodes["n1"].gpus[1]), theirs))
    world.tell(Replicas(node="n1", statuses=(lie, mixed)))
    assert runs(world) == {"mixed": ("n1", (world.nodes["n1"].gpus[1],))}, "of its own it speaks"


def test_of_anothers_replica_it_says_nothing_and_joins_it_in_no_group(world: World) -> None:
    mine = listed(world, "served", ("n2", 0))
    world.tell(Replicas(node="n2", statuses=(mine,)))
    lie = replace(listed(world, "served", ("n2", 0), ("n1", 0)), phase="stopped", ready=False)
    world.tell(Replicas(node="n1", statuses=(lie,)))
    (shown,) = world.core.view().replicas
    assert (shown.replica, shown.node, shown.ready) == ("served", "n2", True)
    world.tell(Replicas(node="n1", statuses=(replace(lie, observed=True, deployment="other"),)))
    assert runs(world) == {"served": ("n2", (world.nodes["n2"].gpus[0],))}
