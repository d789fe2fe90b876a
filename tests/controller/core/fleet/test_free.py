"""A place is found through the index of free GPUs: the same as if every node were ranked, near, and beside spares."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from controller.core.fleet.free import Free, way
from controller.core.fleet.stimuli import Deployment, Shaped
from controller.core.fork import fork
from controller.core.placement.placement import _look, _Search, choose
from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import Target
from vocab.messages import NodeFacts

IDLE = Deployment(name="idle", replicas=0)


class Wired(Node):
    """A node with NVLink islands and NUMA nodes."""

    islands: tuple[int, ...] = ()  # how many GPUs each has
    numa: int = 8  # GPUs of a NUMA node

    def facts(self) -> NodeFacts:
        facts = super().facts()
        starts = [sum(self.islands[:nth]) for nth in range(len(self.islands))]
        islands = tuple(self.gpus[at : at + size] for at, size in zip(starts, self.islands, strict=True))
        gpus = tuple(replace(gpu, numa=gpu.index // self.numa) for gpu in facts.gpus)
        return replace(facts, gpus=gpus, islands=islands)


def wired(*shapes: tuple[int, tuple[int, ...], int], deployments: tuple[Deployment, ...] = (IDLE,)) -> World:
    nodes = []
    for number, (gpus, islands, numa) in enumerate(shapes):
        node = Wired(f"n{number}", gpus)
        node.islands, node.numa = islands, numa
        nodes.append(node)
    world = World(nodes, deployments)
    world.run(12)
    return world


def place(world: World, wanted: int, name: str = "chat-1", *, spares: bool = True) -> Target | None:
    fleet, deployment = world.core._fleet, Deployment(name="chat", gpus_per_replica=wanted)
    return choose(fleet, deployment, name, world.now, spares=spares)


def indexes(target: Target | None) -> list[int]:
    assert target is not None
    return [int(gpu.rpartition("-")[2]) for gpu in target.gpus]


def test_members_stay_in_one_island_though_gpus_of_lower_index_are_free() -> None:
    world = wired((8, (4, 4), 8))
    for index in (0, 2, 3):
        world.ask("hold", gpu=f"GPU-n0-{index}", reason="a new cable", force=True)
    assert indexes(place(world, 2)) == [4, 5]


def test_within_an_island_they_stay_on_one_numa_node() -> None:
    world = wired((8, (8,), 4))
    for index in (0, 1, 2):
        world.ask("hold", gpu=f"GPU-n0-{index}", reason="a new cable", force=True)
    assert indexes(place(world, 2)) == [4, 5]
    assert indexes(place(world, 1)) == [3]


def test_a_node_with_a_whole_island_goes_before_a_fuller_one_and_over_islands_is_better_than_not_at_all() -> None:
    world = wired((4, (2, 2), 8), (8, (4, 4), 8))
    target = place(world, 4)
    assert target is not None
    assert target.node == "n1"
    world.ask("hold", node="n1", reason="moves", force=True)
    assert place(world, 4) == Target(node="n0", gpus=tuple(f"GPU-n0-{index}" for index in range(4)))


def test_spares_are_left_to_replacements() -> None:
    world = wired((4, (), 8))
    world.tell(Shaped(pools={"a": ("n0",)}, spares={"a": 2}))
    assert place(world, 2, spares=False) is not None
    assert place(world, 3, spares=False) is None
    assert place(world, 3) is not None


def test_scaling_leaves_the_spares_of_a_pool_free_and_a_failed_gpu_is_replaced_there() -> None:
    chat = Deployment(name="chat", replicas=4, min_ready=1)
    world = World([Node("n0", 4)], (chat,))
    world.tell(Shaped(pools={"a": ("n0",)}, spares={"a": 1}))
    world.run(40)
    ready = {gpu for replica in world.core.view().replicas for gpu in replica.gpus}
    assert len(ready) == 3, "the fourth replica waits"
    waiting = world.core.view().deployments[0].short_because
    assert waiting is not None
    assert "kept as spares" in waiting
    world.nodes["n0"].hit(min(ready), "xid:95", world.now, fence=True)
    world.run(60)
    (spare,) = set(world.nodes["n0"].gpus) - ready
    assert world.replica_on(spare) is not None


@pytest.mark.parametrize("wanted", [1, 2, 4])
@settings(max_examples=25, deadline=None)
@given(
    shapes=st.lists(
        st.tuples(st.integers(1, 8), st.sampled_from([(), (2, 2, 2, 2), (4, 4), (8,)]), st.sampled_from([2, 4, 8])),
        min_size=1,
        max_size=6,
    ),
    held=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 7)), max_size=12),
    running=st.integers(0, 3),
    name=st.text("abcdef", min_size=1, max_size=4),
)
def test_the_place_is_that_of_the_least_rank_of_all_nodes(
    wanted: int,
    shapes: list[tuple[int, tuple[int, ...], int]],
    held: set[tuple[int, int]],
    running: int,
    name: str,
) -> None:
    shapes = [(sum(islands) or gpus, islands, numa) for gpus, islands, numa in shapes]
    chat = Deployment(name="chat", replicas=running, min_ready=0)
    world = wired(*shapes, deployments=(chat,))
    for node, index in sorted(held):
        if node < len(shapes) and index < shapes[node][0]:
            world.ask("hold", gpu=f"GPU-n{node}-{index}", reason="a new cable", force=True)
    asked = Deployment(name="chat", gpus_per_replica=wanted)
    fleet = world.core._fleet
    search = _Search(fleet, asked, name, world.now, frozenset(), spares=True)
    ranked = [option for node in fleet.nodes if (option := search.option(node)) is not None]
    found = choose(fleet, asked, name, world.now)
    assert (found and found.node) == (min(ranked)[1] if ranked else None)
    assert found is None or len(found.gpus) == wanted


def test_one_replica_looks_at_few_of_many_nodes() -> None:
    world = wired(*[(1, (), 8)] * 40)
    search = _Search(world.core._fleet, IDLE, "chat-1", world.now, frozenset(), spares=True)
    asked: Counter[str] = Counter()
    whole = search.option
    search.option = lambda node: (asked.update([node]), whole(node))[1]  # type: ignore[method-assign]
    assert len(list(search.others())) == 1
    assert asked.total() == 1


def test_equal_nodes_go_round_the_ring_and_each_is_named_once() -> None:
    world = wired(*[(2, (), 8)] * 5)
    free: Free = _look(world.core._fleet, world.now)
    found = list(free.nodes(1, "chat-7"))
    assert sorted(found) == [f"n{n}" for n in range(5)]
    assert found == sorted(found, key=lambda node: way("chat-7", node))


def test_a_copy_to_think_with_counts_as_the_first_does() -> None:
    world = wired((4, (4,), 2))
    world.tell(Shaped(pools={"a": ("n0",)}, spares={"a": 3}))
    free: Free = _look(world.core._fleet, world.now)
    twin = fork(free)
    assert twin.least_apart(3) == free.least_apart(3) == (False, True)
    assert twin.keeps("a", 2)
    assert not twin.keeps("a", 1)
