"""Versions: counted by pool as facts come in, and who drifts from the pool's usual ones."""

from msgspec.structs import replace

from controller.core.faults.matrix import Matrix
from controller.core.fleet.stimuli import Deployment
from controller.core.fleet.versions import DRIVER, Part, Versions
from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import ConditionLine
from vocab.messages import NodeFacts

H100 = "NVIDIA H100 80GB HBM3"
VBIOS = Part("vbios", H100)


class Versioned(Node):
    """A node that says what it runs."""

    driver: str | None = "565.57.01"
    vbios: str | None = "96.00.99.00.01"
    gsp: str | None = None

    def facts(self) -> NodeFacts:
        facts = super().facts()
        gpus = tuple(replace(gpu, name=H100, vbios=self.vbios, gsp=self.gsp) for gpu in facts.gpus)
        return replace(facts, driver=self.driver, cuda="12.7", gpus=gpus)


def fleet(count: int = 4) -> tuple[World, list[Versioned]]:
    nodes = [Versioned(f"n{n}", 2) for n in range(count)]
    return World(nodes, (Deployment(name="idle", replicas=0),)), nodes


def drifting(world: World) -> set[str]:
    last = {line.id: line for line in world.lines if isinstance(line, ConditionLine) and line.code == "version_drift"}
    return {line.subject.node or "" for line in last.values() if line.state != "cleared"}


def test_a_board_with_another_vbios_than_its_pool_drifts_until_it_has_the_same() -> None:
    world, nodes = fleet()
    nodes[1].vbios = "96.00.74.00.01"
    world.run(10)
    assert drifting(world) == {"n1"}
    nodes[1].vbios = nodes[0].vbios
    world.run(10)
    assert drifting(world) == set()


def test_one_board_of_a_node_is_enough_and_a_vbios_that_is_not_told_is_none() -> None:
    world, nodes = fleet()
    nodes[2].vbios = None
    world.run(10)
    assert drifting(world) == set()


def test_two_nodes_have_no_usual_version() -> None:
    world, nodes = fleet(2)
    nodes[0].vbios = "other"
    world.run(10)
    assert drifting(world) == set()


def test_the_matrix_counts_what_each_part_runs_and_names_what_is_known_to_be_bad() -> None:
    world, nodes = fleet()
    nodes[3].driver = "535.54.03"
    nodes[0].gsp = "550.54.15"
    world.run(10)
    found: Matrix = world.core.versions()
    (driver,) = [part for part in found.parts if part.part == "driver"]
    assert [(each.version, each.count, each.usual) for each in driver.versions] == [
        ("565.57.01", 3, True),
        ("535.54.03", 1, False),
    ]
    assert driver.versions[1].nodes == ("n3",)
    assert {(part.part, part.board) for part in found.parts} == {
        ("driver", ""), ("cuda", ""), ("vbios", H100), ("gsp", H100)}  # fmt: skip
    assert [bad.nodes for bad in found.known_bad] == [("n0",), ("n3",)]


def test_a_node_that_changes_its_pool_or_version_is_counted_once() -> None:
    versions = Versions()
    assert versions.put("n1", "a", {DRIVER: "1", VBIOS: "x"})
    assert not versions.put("n1", "a", {DRIVER: "1", VBIOS: "x"})
    assert not versions.put("n1", "a", {DRIVER: "1", VBIOS: "x", Part("cuda"): "12.7"}), "CUDA is not judged"
    assert versions.put("n1", "b", {DRIVER: "2"})
    assert list(versions.rows()) == [("b", DRIVER, {"2": {"n1": None}})]
