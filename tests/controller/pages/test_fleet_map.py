"""Which nodes and GPUs a filter finds, and how a tile says its state."""

from msgspec.structs import replace

from controller.core.fleet.views import View
from controller.pages.fleet_map import Filter, Found, Tiles, choices, find
from controller.pages.words import shape
from tests.controller import showcase
from vocab.states import Health, Phase

FLEET = showcase.fleet()
NODE = FLEET.nodes[0]
OTHER = replace(NODE, node="<b>gpu-node-02", gpus=tuple(replace(gpu, state="healthy") for gpu in NODE.gpus))
VIEW = View(
    paused=False, settled=True, nodes=(NODE, OTHER), deployments=FLEET.deployments, replicas=FLEET.replicas,
    incidents=(), conditions=(), holds=(), actions=(), counts=FLEET.counts,
)  # fmt: skip
POOLS = {"serving": (NODE.node,)}


def names(found: Found) -> list[tuple[str, list[int]]]:
    return [(each.node.node, [gpu.index for gpu in each.gpus]) for part in found.sections for each in part.nodes]


def test_nothing_asked_is_everything_by_pool() -> None:
    found = find(VIEW, Filter(), POOLS)
    assert [(part.pool, part.gpus) for part in found.sections] == [("", 8), ("serving", 8)]
    assert found.counts == {"healthy": 14, "lost": 1, "degraded": 1}
    assert found.cards


def test_trouble_is_all_but_healthy_and_the_legend_counts_on() -> None:
    found = find(VIEW, Filter(state="trouble"), POOLS)
    assert names(found) == [(NODE.node, [0, 5])]
    assert found.counts["healthy"] == 14


def test_a_deployment_a_model_and_a_text_each_narrow() -> None:
    assert names(find(VIEW, Filter(pool="serving", deployment="pair"), POOLS)) == [(NODE.node, [4, 5])]
    assert names(find(VIEW, Filter(pool="serving", model="smollm2"), POOLS)) == [(NODE.node, [1, 3, 4, 5])]
    assert names(find(VIEW, Filter(pool="serving", text="THERMAL"), POOLS)) == [(NODE.node, [5])]
    assert names(find(VIEW, Filter(text="nothing like it"), POOLS)) == []
    assert choices(VIEW, POOLS).deployments == ("chat", "pair")


def test_a_large_fleet_is_tiles_and_cards_end_somewhere() -> None:
    nodes = tuple(replace(NODE, node=f"n{number}") for number in range(50))
    many = replace(VIEW, nodes=nodes)
    assert not find(many, Filter(), {}).cards
    shown = find(many, Filter(show="cards"), {})
    assert (sum(len(part.nodes) for part in shown.sections), shown.left_out) == (32, 18)


def test_a_tile_says_its_state_by_shape_and_name_and_names_are_escaped() -> None:
    tiles, (part, *_) = Tiles(), find(VIEW, Filter(), {}).sections
    drawn = [str(tiles.of(each)) for each in part.nodes]
    assert 'aria-label="GPU 0 lost">✖</a>' in drawn[0]
    assert 'aria-label="GPU 5 degraded">▲</a>' in drawn[0]
    assert "<b>gpu" not in drawn[1]
    assert tiles.of(part.nodes[0]) is tiles.of(part.nodes[0])


def test_every_word_of_a_gpu_has_a_shape_of_its_own_but_for_the_gone() -> None:
    words = {*map(str, Health), *map(str, Phase), "cordoned", "unknown"} - {Phase.IN_SERVICE.value}
    shapes = {word: shape(word) for word in words}
    assert "–" not in {shapes[word] for word in words - {"removed"}}
