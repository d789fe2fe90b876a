"""Groups: one replica over several nodes, whole or not at all."""

from itertools import pairwise

import pytest

from controller.core.fleet.stimuli import Deployment, Reached, Shaped
from controller.core.placement.placement import choose
from tests.controller.core.conftest import MakeWorld
from tests.sim.world import World
from vocab.lines import ActionLine, StateLine
from vocab.messages import ReplicaSpec
from vocab.observations import Exit
from vocab.states import ActionKind, ActionState

IDLE = Deployment(name="idle", replicas=0)
WIDE = Deployment(name="wide", gpus_per_replica=4, nodes_per_replica=2)
STOP, DRAIN, START = ActionKind.STOP_REPLICA, ActionKind.DRAIN, ActionKind.START_REPLICA


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    """A group of two nodes among three of four GPUs, serving."""
    return make_world(WIDE, nodes=3, gpus=4)


def group(world: World) -> tuple[str, tuple[str, ...]]:
    """The name and the nodes of the only group there is."""
    (replica,) = world.core.view().replicas
    return replica.replica, replica.nodes


def told(world: World, node: str) -> tuple[ReplicaSpec, ...]:
    """What a node is told of replicas."""
    desired = world.core.desired(node)
    assert desired is not None
    return desired.replicas


def processes(world: World, name: str) -> list[str]:
    """The nodes on which a process of a replica lives."""
    found = [(node, node.processes.get(name)) for node in world.nodes.values()]
    return [node.name for node, process in found if process is not None and process.exit is None]


def die(world: World, node: str, name: str) -> None:
    world.nodes[node].processes[name].exit = Exit(code=1, text="NCCL error")


def ended(world: World, of: ActionKind, name: str) -> list[ActionLine]:
    return [line for line in world.ordered(of) if line.subject.replica == name]


def test_it_starts_on_all_its_nodes_with_ranks_and_one_leader(world: World) -> None:
    name, nodes = group(world)
    assert len(nodes) == 2
    specs = [spec for node in nodes for spec in told(world, node)]
    assert [spec.replica for spec in specs] == [name, name]
    assert specs[0].members == specs[1].members
    assert [(member.node, member.rank) for member in specs[0].members] == [
        (nodes[0], 0), (nodes[0], 1), (nodes[1], 2), (nodes[1], 3),
    ]  # fmt: skip
    assert {(spec.leader, spec.leader_port) for spec in specs} == {(nodes[0], specs[0].leader_port)}
    assert specs[0].leader_port
    (view,) = world.core.view().deployments
    assert (view.ready, view.short_because) == (1, None)


def test_without_room_for_all_of_it_no_part_starts(make_world: MakeWorld) -> None:
    world = make_world(IDLE, nodes=2, gpus=4)
    world.ask("hold", gpu="GPU-n1-0", reason="mine")
    three = Deployment(name="wide", gpus_per_replica=8, nodes_per_replica=2)
    assert choose(world.core._fleet, three, "wide-1", world.now) is None
    world.ask("lift", gpu="GPU-n1-0", reason="done")
    target = choose(world.core._fleet, three, "wide-1", world.now)
    assert target is not None
    assert sorted(target.nodes) == ["n1"] * 4 + ["n2"] * 4
    assert len(set(target.gpus)) == 8


def test_it_stays_in_one_failure_domain_where_there_is_room(make_world: MakeWorld) -> None:
    world = make_world(IDLE, nodes=5, gpus=2)
    world.tell(Shaped(domains={"a": ("n1", "n3"), "b": ("n2", "n5"), "c": ("n4",)}))
    for nth in range(8):
        target = choose(world.core._fleet, WIDE, f"wide-{nth}", world.now)
        assert target is not None
        assert set(target.nodes) in ({"n1", "n3"}, {"n2", "n5"})
    world.ask("hold", node="n1", reason="mine")
    world.ask("hold", node="n2", reason="mine")
    target = choose(world.core._fleet, WIDE, "wide-1", world.now)
    assert target is not None, "better over two racks than nowhere"


def test_its_nodes_have_one_driver_version(make_world: MakeWorld) -> None:
    world = make_world(IDLE, nodes=3, gpus=2)
    for node, driver in zip(("n1", "n2", "n3"), ("570.1", "580.2", "570.1"), strict=True):
        world.nodes[node].driver = driver
    world.run(6)
    target = choose(world.core._fleet, WIDE, "wide-1", world.now)
    assert target is not None
    assert set(target.nodes) == {"n1", "n3"}
    world.nodes["n3"].driver = "590.3"
    world.run(6)
    assert choose(world.core._fleet, WIDE, "wide-1", world.now) is None


def test_it_is_ready_only_while_every_member_lives(make_world: MakeWorld) -> None:
    world = make_world(IDLE, nodes=2, gpus=2)
    world.nodes["n2"].busy = world.nodes["n2"].slow = True
    world.deployments.append(WIDE)
    world._declare()
    world.run(20)
    name, nodes = group(world)
    assert world.core.view().deployments[1].ready == 0, "its leader may say so, but a part has not begun"
    world.nodes["n2"].busy = world.nodes["n2"].slow = False
    world.run(20)
    assert world.core.view().deployments[1].ready == 1
    assert processes(world, name) == sorted(nodes)


@pytest.mark.parametrize("which", [0, 1])
def test_a_dead_member_ends_the_whole_group_which_starts_anew_after_a_back_off(world: World, which: int) -> None:
    name, nodes = group(world)
    die(world, nodes[which], name)
    world.run(8)
    assert processes(world, name) == []
    assert [line.rule for line in ended(world, STOP, name)] == ["replica/group_broken"]
    assert not world.ordered(ActionKind.RESTART_REPLICA)
    world.run(30)
    new, _ = group(world)
    assert new != name
    assert world.core.view().deployments[0].ready == 1
    failures = world.core._fleet.roster.failures("wide", 0.0)
    assert len(failures) == 1, "one failure, however many members it had"


def test_a_group_that_dies_again_and_again_is_stopped(make_world: MakeWorld) -> None:
    world = make_world(WIDE, nodes=2, gpus=2)
    began = world.now
    while world.now < began + 300:
        for replica in world.core.view().replicas:
            for node in replica.nodes:
                if replica.replica in world.nodes[node].processes:
                    die(world, node, replica.replica)
        world.run(4)
    starts = world.ordered(START)
    assert len(starts) == 3, "three in a window, as of any deployment"
    gaps = [later.at - sooner.at for sooner, later in pairwise(starts)]
    assert gaps == sorted(gaps)
    (view,) = world.core.view().deployments
    assert view.short_because is not None
    assert "last starts failed" in view.short_because


def test_a_fault_of_one_member_is_one_incident_and_one_drain_of_its_leader_first(world: World) -> None:
    name, nodes = group(world)
    worker = world.nodes[nodes[1]]
    sick = next(gpu for gpu in worker.gpus if world.replica_on(gpu) == name)
    worker.hit(sick, "xid:63", world.now)
    worker.hit(sick, "xid:48", world.now, fence=True)
    world.run(4)
    new = next(replica for replica in world.core.view().replicas if replica.replica != name)
    assert not new.ready, "replaced before it is removed"
    assert not next(each for each in world.core.view().replicas if each.replica == name).admitting
    world.run(4)
    assert len({line.id for line in world.opened() if line.subject.gpu == sick}) == 1
    assert len(ended(world, DRAIN, name)) == 1
    specs = {node: told(world, node) for node in nodes}
    phases = {node: spec.phase for node, listed in specs.items() for spec in listed if spec.replica == name}
    assert phases == {nodes[0]: "drain", nodes[1]: "run"}, "its leader ends what is open, and needs the others"
    world.run(30)
    assert processes(world, name) == []
    assert world.replica_on(sick) is None


def test_gpus_of_a_group_are_stranded_while_another_members_gpu_is_held(world: World) -> None:
    name, nodes = group(world)
    world.nodes[nodes[1]].hit(f"GPU-{nodes[1]}-0", "xid:79", world.now, fence=True)
    taken = [gpu for node in nodes for gpu in world.nodes[node].gpus if world.replica_on(gpu) == name]
    world.run(2)
    stranded = [gpu for gpu in taken if world.gpu(gpu).stranded]  # type: ignore[attr-defined]
    assert stranded == [gpu for gpu in taken if gpu != f"GPU-{nodes[1]}-0"]
    assert world.core.view().counts["stranded"] == len(stranded)


def lose(world: World, node: str) -> None:
    world.nodes[node].silent = True
    for _ in range(30):
        world.run(2)
        for by in ("gateway", "controller"):
            world.tell(Reached(of=node, by=by, ok=False))


@pytest.mark.parametrize("which", [0, 1])
def test_when_a_node_is_lost_the_rest_is_stopped_and_the_group_is_placed_elsewhere(world: World, which: int) -> None:
    name, nodes = group(world)
    lost, other = nodes[which], nodes[1 - which]
    lose(world, lost)
    assert name not in world.nodes[other].processes
    new, where = group(world)
    assert new != name
    assert lost not in where
    world.run(20)
    assert world.core.view().deployments[0].ready == 1


def test_a_silent_node_takes_no_group_down(world: World) -> None:
    name, nodes = group(world)
    world.nodes[nodes[1]].silent = True
    world.run(120)
    assert processes(world, name) == sorted(nodes)
    assert not world.ordered(STOP, DRAIN)


def test_a_node_that_boots_takes_its_group_with_it_once(world: World) -> None:
    name, nodes = group(world)
    world.nodes[nodes[1]].reboot(world.now)
    world.run(40)
    assert processes(world, name) == []
    assert len(ended(world, STOP, name)) == 1
    new, where = group(world)
    assert (world.core.view().deployments[0].ready, processes(world, new)) == (1, sorted(where))


def test_a_new_controller_knows_a_group_and_leaves_it_alone(world: World) -> None:
    before = group(world)
    world.restart()
    world.run(40)
    assert group(world) == before
    assert not world.ordered(STOP, DRAIN)
    assert world.core.view().deployments[0].ready == 1


def test_a_stalled_group_is_started_anew_as_a_whole(world: World) -> None:
    name, nodes = group(world)
    world.nodes[nodes[0]].stalled.add(name)
    world.nodes[nodes[0]].complain(name, "replica_stalled", world.now)
    world.run(150)
    (stop,) = ended(world, STOP, name)
    assert "started anew as a whole" in stop.why
    restarts = [line for line in world.actions(ActionKind.RESTART_REPLICA) if line.subject.replica == name]
    assert restarts[-1].state is ActionState.COVERED
    assert group(world)[0] != name


def test_a_persons_drain_of_a_node_takes_the_whole_group_and_says_so(world: World) -> None:
    name, nodes = group(world)
    world.ask("drain", node=nodes[1], reason="a new cable")
    world.run(40)
    assert processes(world, name) == []
    words = [line.to for line in world.lines if isinstance(line, StateLine) and line.subject.replica == name]
    assert words[-1] == "stopped"
    assert len(ended(world, DRAIN, name)) == 1
