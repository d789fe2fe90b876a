"""GPUs that a replica's fault names as the likely cause: once is a restart, twice within a day is a hold."""

import pytest

from controller.core.faults import suspects
from controller.core.faults.suspects import AGAIN_S
from tests.controller.core.conftest import MakeWorld
from tests.sim.node import Node
from tests.sim.world import SELDOM_S, World
from vocab.events import Event, Recovery, Scope, Severity, Source
from vocab.lines import HoldLine, Subject, Suspect
from vocab.states import ClearsOn, Level

CODE = "collective_timeout"


def suspect(world: World, node: Node, gpu: str, confidence: str = "medium", *, rest_s: float = 20) -> None:
    """A collective times out, names this GPU, and is over before anything is restarted for it."""
    pair = next(replica.replica for replica in world.core.view().replicas if replica.deployment == "pair")
    event = node.complain(pair, CODE, world.now, suspects=[{"gpu": gpu, "confidence": confidence}])
    world.run(4)
    node.content(event, world.now)
    world.run(rest_s, every_s=min(SELDOM_S, rest_s / 10))


def held(world: World) -> list[HoldLine]:
    return [hold for hold in world.core.view().holds if hold.owner == "policy"]


def test_one_suspicion_holds_nothing(world: World, node: Node) -> None:
    suspect(world, node, node.gpus[2], "high")
    assert held(world) == []


def test_the_second_suspicion_within_a_day_holds_until_a_person_has_looked(world: World, node: Node) -> None:
    suspect(world, node, node.gpus[2], "high")
    suspect(world, node, node.gpus[2])
    (hold,) = world.placed()
    assert (hold.subject, hold.clears_on) == (Subject(gpu=node.gpus[2]), ClearsOn.PERSON)
    assert hold.reason == "collective_timeout: suspected for the second time within a day"


@pytest.mark.parametrize(
    ("second", "confidence", "rest_s"), [(3, "high", 20), (2, "low", 20), (2, "high", AGAIN_S + 60)]
)
def test_another_gpu_a_low_confidence_or_another_day_is_chance(
    world: World, node: Node, second: int, confidence: str, rest_s: float
) -> None:
    suspect(world, node, node.gpus[2], "high", rest_s=rest_s)
    suspect(world, node, node.gpus[second], confidence)
    assert world.placed() == []


def test_one_incident_that_goes_on_is_one_suspicion(world: World, node: Node) -> None:
    pair = next(replica.replica for replica in world.core.view().replicas if replica.deployment == "pair")
    for _ in range(3):
        node.complain(pair, CODE, world.now, suspects=[{"gpu": node.gpus[2], "confidence": "high"}])
        world.run(4)
    assert world.placed() == []


def test_a_level_that_forbids_it_says_what_would_be_held(make_world: MakeWorld) -> None:
    world = make_world(level=Level.FENCE)
    node = world.nodes["n1"]
    suspect(world, node, node.gpus[2])
    suspect(world, node, node.gpus[2])
    said = [line for line in world.lines if isinstance(line, HoldLine)]
    assert [(line.op, line.subject.gpu) for line in said] == [("would_place", node.gpus[2])]


def event(*named: object) -> Event:
    return Event(
        id="e", at="2026-11-29T12:00:00.000000Z", node="n1", boot_id="b", code=CODE, severity=Severity.ERROR,
        recovery=Recovery.RESTART_APP, scope=Scope.REPLICA, source=Source.ENGINE, fields={"suspects": list(named)},
    )  # fmt: skip


def test_what_names_no_gpu_is_no_suspect() -> None:
    named = event({"gpu": "g1", "confidence": "high"}, {"gpu": "g2"}, {"gpu": ""}, "g3", {"confidence": "high"})
    assert suspects.named_by(named) == (Suspect(gpu="g1", confidence="high"), Suspect(gpu="g2", confidence="low"))


def test_of_two_confidences_the_higher_one_counts() -> None:
    low, high = Suspect(gpu="g1", confidence="low"), Suspect(gpu="g1", confidence="high")
    other = Suspect(gpu="g2", confidence="medium")
    assert suspects.joined((low,), (high, other)) == (high, other)
    assert suspects.joined((high,), (low,)) == (high,)
    assert suspects.joined((low,), (Suspect(gpu="g1", confidence="certainly"),)) == (low,), "an unknown word is low"
