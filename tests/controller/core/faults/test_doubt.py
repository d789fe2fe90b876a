"""When too much looks sick we doubt ourselves: rules that fall back to shadow, and what brings them back."""

from controller.core.fleet.settings import Limits, Settings
from controller.core.fleet.stimuli import Deployment
from tests.controller.core.conftest import MakeWorld
from tests.sim.world import SELDOM_S, World
from vocab.lines import HoldLine, NoteLine

IDLE = Deployment(name="idle", replicas=0)
ROOM = Settings(limits=Limits(cordons=1000, cordons_ratio=1.0, node_ratio=1.0))


def demoted(world: World) -> list[str]:
    return [line.text for line in world.lines if isinstance(line, NoteLine) and line.code == "rule_demoted"]


def would(world: World) -> list[HoldLine]:
    return [line for line in world.lines if isinstance(line, HoldLine) and line.op == "would_place"]


def hit(world: World, code: str, *numbers: int) -> None:
    for number in numbers:
        node = world.nodes[f"n{number}"]
        node.hit(node.gpus[0], code, world.now)
    world.run(4)


def lift(world: World, count: int, **more: str | bool) -> None:
    for hold in world.placed()[:count]:
        world.ask("lift", gpu=hold.subject.gpu or "", reason="a false alarm", force=True, **more)
    world.run(4)


def test_three_of_ten_holds_lifted_by_force_put_a_rule_into_shadow(make_world: MakeWorld) -> None:
    world = make_world(IDLE, nodes=12, gpus=1, settings=ROOM)
    hit(world, "xid:95", *range(1, 7))
    lift(world, 2)
    assert demoted(world) == [], "two may be a coincidence"
    lift(world, 3)
    [text] = demoted(world)
    assert "xid:95 was wrong in the eyes of people: 3 of 6 holds" in text
    hit(world, "xid:95", 9)
    assert len(world.placed()) == 6
    assert [hold.subject.gpu for hold in would(world)] == ["GPU-n9-0"]


def test_a_rule_that_is_seldom_wrong_stays(make_world: MakeWorld) -> None:
    world = make_world(IDLE, nodes=32, gpus=1, settings=ROOM)
    for first in range(1, 32, 8):  # eight an hour: as many as a whole node that dies
        hit(world, "xid:95", *range(first, first + 8))
        world.run(3600, every_s=SELDOM_S)
    lift(world, 3)
    assert demoted(world) == [], "3 of 32 are less than a tenth"


def test_only_the_rule_that_was_wrong_falls_back(make_world: MakeWorld) -> None:
    world = make_world(IDLE, nodes=12, gpus=1, settings=ROOM)
    hit(world, "xid:95", 1, 2, 3)
    lift(world, 3)
    assert len(demoted(world)) == 1
    hit(world, "xid:48", 9)
    assert [hold.subject.gpu for hold in would(world)] == []
    assert len(world.placed()) == 4


def test_a_gpu_that_was_repaired_is_no_mistake_of_the_rule(make_world: MakeWorld) -> None:
    world = make_world(IDLE, nodes=12, gpus=1, settings=ROOM)
    hit(world, "xid:95", *range(1, 7))
    for number in (1, 2, 3):
        world.ask("set_healthy", gpu=f"GPU-n{number}-0", reason="reset by hand")
    for number in (4, 5, 6):
        world.ask("release", gpu=f"GPU-n{number}-0", reason="reset by hand")
    world.run(4)
    assert demoted(world) == []


def test_a_rule_that_fires_on_more_than_a_hundredth_of_all_gpus_in_an_hour_falls_back(make_world: MakeWorld) -> None:
    world = make_world(IDLE, nodes=20, gpus=1, settings=ROOM)
    hit(world, "xid:95", *range(1, 9))
    assert demoted(world) == [], "no more than a whole node that dies"
    hit(world, "xid:95", 9)
    [text] = demoted(world)
    assert "fired on 9 of 20 GPUs within an hour" in text
    hit(world, "xid:95", 10)
    assert len(world.placed()) <= 9
    assert "GPU-n10-0" in [hold.subject.gpu for hold in would(world)]


def test_a_person_who_has_looked_brings_a_rule_back_and_it_begins_anew(make_world: MakeWorld) -> None:
    world = make_world(IDLE, nodes=12, gpus=1, settings=ROOM)
    hit(world, "xid:95", 1, 2, 3)
    lift(world, 3)
    world.ask("discard_backlog", reason="the probe was mended")
    hit(world, "xid:95", 9)
    assert len(world.placed()) == 4
    assert len(demoted(world)) == 1


def test_a_rule_stays_in_shadow_over_a_restart(make_world: MakeWorld) -> None:
    world = make_world(IDLE, nodes=12, gpus=1, settings=ROOM)
    hit(world, "xid:95", 1, 2, 3)
    lift(world, 3)
    world.restart()
    world.run(40)
    hit(world, "xid:95", 9)
    assert len(world.placed()) == 3
