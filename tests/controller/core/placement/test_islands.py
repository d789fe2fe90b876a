"""Islands: members stay where NVLink reaches, and a deployment that needs that says why it does not fit."""

from msgspec.structs import replace

from controller.core.fleet.stimuli import Deployment, Shaped
from controller.core.placement.placement import choose
from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import Target
from vocab.messages import NodeFacts

IDLE = Deployment(name="idle", replicas=0)
FOUR = Deployment(name="four", gpus_per_replica=4, island="required")
TWO = Deployment(name="two", gpus_per_replica=2)


class Linked(Node):
    """A node whose GPUs are in islands of this size, or in one clique of a fabric over nodes."""

    size: int = 0
    fabric: str | None = None

    def facts(self) -> NodeFacts:
        facts = super().facts()
        gpus = tuple(replace(gpu, fabric=self.fabric) for gpu in facts.gpus)
        found = range(0, len(self.gpus), self.size) if self.size else ()
        return replace(facts, gpus=gpus, islands=tuple(self.gpus[at : at + self.size] for at in found))


def world_of(*nodes: Node, deployments: tuple[Deployment, ...] = (IDLE,)) -> World:
    world = World(nodes, deployments)
    world.run(12)
    return world


def linked(name: str, size: int = 0, fabric: str | None = None, *, gpus: int = 8) -> Node:
    node = Linked(name, gpus)
    node.size, node.fabric = size, fabric
    return node


def place(world: World, deployment: Deployment) -> Target | None:
    return choose(world.core._fleet, deployment, f"{deployment.name}-1", world.now)


def because(world: World) -> str | None:
    return world.core.view().deployments[0].short_because


def test_where_an_island_is_required_there_is_none_or_one() -> None:
    world = world_of(linked("n1", 2), deployments=(FOUR,))
    assert because(world) is not None
    assert because(world) == "1 to start: 8 free GPUs, but no island of 4: 8 free"
    assert place(world, replace(FOUR, island="preferred")) is not None
    other = world_of(linked("n1", 2), linked("n2", 4))
    target = place(other, FOUR)
    assert target is not None
    assert target.gpus in {tuple(f"GPU-n2-{n}" for n in range(at, at + 4)) for at in (0, 4)}


def test_islands_that_nobody_knows_are_none_where_one_is_required() -> None:
    world = world_of(linked("n1"), deployments=(FOUR,))
    assert because(world) == "1 to start: 8 free GPUs, but their islands are not known: 8 free"
    assert place(world, replace(FOUR, gpus_per_replica=1)) is not None, "one GPU is an island"


def test_a_gpu_that_its_fabric_has_not_taken_in_is_in_no_island_but_takes_work_of_its_own() -> None:
    node = linked("n1", 4, gpus=4)
    world = world_of(node)
    node.hit("GPU-n1-0", "fabric_incomplete", world.now)
    world.run(4)
    assert place(world, FOUR) is None
    target = place(world, TWO)
    assert target is not None
    assert "GPU-n1-0" not in target.gpus
    for gpu in node.gpus[1:]:
        world.ask("hold", gpu=gpu, reason="mine", force=True)
    assert place(world, Deployment(name="one")) == Target(node="n1", gpus=("GPU-n1-0",))


def test_the_fabric_that_gpus_name_goes_before_what_the_board_is_known_for() -> None:
    world = world_of(linked("n1", 2, "cluster/1", gpus=4))
    assert place(world, FOUR) is not None


def test_a_group_stays_in_one_fabric_where_there_is_room() -> None:
    nodes = [linked(f"n{n}", 4, f"cluster/{n % 2}", gpus=4) for n in range(1, 6)]
    world = world_of(*nodes)
    world.tell(Shaped(domains={"rack": ("n1", "n2")}))
    wide = Deployment(name="wide", gpus_per_replica=8, nodes_per_replica=2, island="required")
    target = place(world, wide)
    assert target is not None
    assert set(target.nodes) in ({"n1", "n3"}, {"n3", "n5"}, {"n1", "n5"}, {"n2", "n4"})


def test_a_group_that_finds_no_room_says_how_many_nodes_it_needs() -> None:
    wide = Deployment(name="wide", gpus_per_replica=8, nodes_per_replica=2)
    world = world_of(linked("n1", gpus=4), linked("n2", gpus=2), deployments=(wide,))
    assert because(world) == "1 to start: no 2 nodes have 4 GPUs each for it"
    world = world_of(linked("n1", gpus=4), linked("n2", gpus=4), deployments=(wide,))
    assert because(world) is None
    world = world_of(linked("n1", gpus=4), linked("n2", gpus=4), deployments=(replace(wide, replicas=2),))
    assert because(world) == "1 to start: no 2 nodes have 4 GPUs each free: 8 occupied"


def test_nodes_of_different_drivers_are_named_as_the_reason() -> None:
    wide = Deployment(name="wide", gpus_per_replica=8, nodes_per_replica=2)
    one, two = linked("n1", gpus=4), linked("n2", gpus=4)
    one.driver, two.driver = "570.1", "580.2"
    world = world_of(one, two, deployments=(wide,))
    assert because(world) == "1 to start: 2 nodes have 4 GPUs free, but no 2 of one driver version: 8 free"


def test_stranded_gpus_are_told_apart_from_those_that_work() -> None:
    wide = Deployment(name="wide", gpus_per_replica=4, nodes_per_replica=2)
    nodes = [linked(name, gpus=2) for name in ("n1", "n2")]
    world = world_of(*nodes, deployments=(wide,))
    nodes[1].hit("GPU-n2-0", "xid:79", world.now, fence=True)
    world.run(2)
    assert world.core.view().counts["stranded"] == 3
    assert "3 stranded" in (because(world) or "")
