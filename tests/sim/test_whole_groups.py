"""Groups are whole or not at all, in any order of deaths, silences and boots of members, and of new controllers."""

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.core.fleet.stimuli import Deployment, Reached
from tests.sim.node import Node
from tests.sim.world import World
from vocab.observations import Exit
from vocab.states import ActionKind, ActionState

WIDE = Deployment(name="wide", replicas=2, gpus_per_replica=4, nodes_per_replica=2)
NAMES = ("n1", "n2", "n3", "n4", "n5")
SICK = ("xid:79", "xid:48")
UNENDED = {ActionState.WAITING, ActionState.ORDERED, ActionState.RUNNING}

nodes = st.sampled_from(NAMES)
deeds = st.one_of(
    st.tuples(st.sampled_from(("die", "silent", "lost", "back", "boot", "fault")), nodes),
    st.tuples(st.just("restart"), st.just("")),
    st.tuples(st.just("pause"), st.just("")),
)


def living(node: Node) -> dict[str, tuple[str, ...]]:
    """The processes of a node, with the GPUs that they hold there."""
    found = {name: process for name, process in node.processes.items() if process.exit is None}
    return {
        name: tuple(member.gpu for member in process.spec.members if member.node == node.name)
        for name, process in found.items()
    }


def do(world: World, deed: str, name: str) -> None:
    node = world.nodes.get(name)
    if deed == "restart":
        world.restart()
    elif deed == "pause":
        world.ask("resume" if world.core.view().paused else "pause", reason="a test")
    elif node is None:
        return
    elif deed == "die":
        for process in node.processes.values():
            process.exit = process.exit or Exit(code=1, text="NCCL error")
    elif deed in {"silent", "lost"}:
        node.silent = True
        for by in ("gateway", "controller") if deed == "lost" else ():
            world.run(20)
            world.tell(Reached(of=name, by=by, ok=False))
    elif deed == "back":
        node.silent = False
    elif deed == "boot":
        node.reboot(world.now)
    elif deed == "fault":
        node.hit(node.gpus[0], SICK[len(world.lines) % 2], world.now, fence=True)


def check(world: World) -> None:
    """No GPU has two processes, no group is told to go twice."""
    for node in world.nodes.values():
        held = [gpu for gpus in living(node).values() for gpu in gpus]
        assert len(held) == len(set(held)), f"two groups on one GPU of {node.name}"
    drains, stops = defaultdict(set), defaultdict(set)
    for line in world.actions(ActionKind.DRAIN, ActionKind.STOP_REPLICA):
        kind = drains if line.of is ActionKind.DRAIN else stops
        (kind[line.subject.replica].add if line.state in UNENDED else kind[line.subject.replica].discard)(line.id)
        assert len(kind[line.subject.replica]) < 2, f"{line.subject.replica} is told to go twice"


@given(script=st.lists(st.tuples(deeds, st.sampled_from((1, 4, 30))), min_size=1, max_size=12))
@settings(max_examples=12, deadline=None)
def test_no_half_group_runs_for_ever(script: list[tuple[tuple[str, str], int]]) -> None:
    world = World([Node(name, 2) for name in NAMES], [WIDE])
    world.run(20)
    for (deed, name), seconds in script:
        do(world, deed, name)
        world.run(seconds)
        check(world)
    for node in world.nodes.values():
        node.silent = False
    world.run(700, every_s=10.0)
    check(world)
    parts = defaultdict(set)
    for node in world.nodes.values():
        for name in living(node):
            parts[name].add(node.name)
    groups = {replica.replica: set(replica.nodes) for replica in world.core.view().replicas}
    for name, where in parts.items():
        assert groups.get(name) == where, f"of {name} only {where} is left"
