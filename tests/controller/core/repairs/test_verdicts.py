"""What a person says of an incident: it ends, Corral was right or wrong, and a rule's record follows from that."""

import pytest

from controller.core.fleet.precision import of_rule, wilson
from controller.core.fleet.settings import Limits, Settings
from controller.core.fleet.stimuli import Deployment
from tests.controller.core.conftest import MakeWorld
from tests.sim.world import World
from vocab.lines import NoteLine
from vocab.states import Level

IDLE = Deployment(name="idle", replicas=0)
ROOM = Settings(limits=Limits(cordons=1000, cordons_ratio=1.0, node_ratio=1.0))


def hit(world: World, *numbers: int, code: str = "xid:95") -> list[str]:
    """One fault a node; the incidents that they opened."""
    before = len(world.opened())
    for number in numbers:
        node = world.nodes[f"n{number}"]
        node.hit(node.gpus[0], code, world.now)
    world.run(4)
    return [incident.id for incident in world.opened()[before:]]


def close(world: World, incidents: list[str], verdict: str = "") -> None:
    for incident in incidents:
        world.ask("close", incident=incident, verdict=verdict or None, reason="looked at it")  # type: ignore[arg-type]
    world.run(4)


def notes(world: World, code: str) -> list[NoteLine]:
    return [line for line in world.lines if isinstance(line, NoteLine) and line.code == code]


@pytest.fixture
def fleet(make_world: MakeWorld) -> World:
    return make_world(IDLE, nodes=12, gpus=1, settings=ROOM)


def test_closing_gives_the_gpu_back_and_has_its_agent_look_anew(fleet: World) -> None:
    incidents = hit(fleet, 1)
    close(fleet, incidents)
    view = fleet.core.view()
    assert (view.incidents, view.holds) == ((), ())
    assert {gpu.health for node in view.nodes for gpu in node.gpus} == {"healthy"}
    desired = fleet.core.desired("n1")
    assert desired is not None
    assert list(desired.healthy) == ["GPU-n1-0"]
    assert notes(fleet, "verdict") == []


def test_three_of_its_holds_marked_wrong_put_a_rule_into_shadow_and_adopting_anew_brings_it_back(fleet: World) -> None:
    close(fleet, hit(fleet, 1, 2), "wrong")
    assert notes(fleet, "rule_demoted") == []
    close(fleet, hit(fleet, 3), "wrong")
    [note] = notes(fleet, "rule_demoted")
    assert "xid:95 was wrong in the eyes of people: 3 of 3 holds were marked wrong" in note.text
    hit(fleet, 4)
    assert len(fleet.placed()) == 3


def test_a_verdict_outweighs_the_force_with_which_a_hold_was_lifted(fleet: World) -> None:
    incidents = hit(fleet, 1, 2, 3)
    for incident in incidents:
        fleet.ask("close", incident=incident, verdict="right", reason="the board was bad")
    for hold in fleet.placed():
        fleet.ask("lift", gpu=hold.subject.gpu or "", reason="in a hurry", force=True)
    fleet.run(4)
    assert notes(fleet, "rule_demoted") == []


def test_a_closed_incident_can_be_judged_afterwards_and_anew(fleet: World) -> None:
    incidents = hit(fleet, 1)
    close(fleet, incidents)
    close(fleet, incidents, "wrong")
    close(fleet, incidents, "right")
    record = of_rule(fleet.core._fleet.ledger, "xid:95", fleet.now)
    assert (record.holds, record.right, record.wrong, record.ratio) == (1, 1, 0, 1.0)
    assert [note.right for note in notes(fleet, "verdict")] == [False, True]


def test_what_would_have_been_held_is_judged_too_and_demotes_nothing(make_world: MakeWorld) -> None:
    world = make_world(IDLE, nodes=12, gpus=1, settings=ROOM, level=Level.OBSERVE)
    close(world, hit(world, 1, 2, 3, 4), "wrong")
    record = of_rule(world.core._fleet.ledger, "xid:95", world.now)
    assert (record.holds, record.would, record.wrong, record.ratio) == (0, 4, 4, 0.0)
    assert notes(world, "rule_demoted") == []


@pytest.mark.parametrize(
    ("incident", "verdict", "said"),
    [
        ("i-none", "right", "no such incident"),
        (None, "right", "no such incident"),
        ("known", "maybe", "right or wrong, not 'maybe'"),
        ("known", None, "closed already"),
    ],
)
def test_what_cannot_be_closed_is_refused(fleet: World, incident: str | None, verdict: str | None, said: str) -> None:
    known = hit(fleet, 1)
    close(fleet, known)
    fleet.ask(
        "close",
        incident=known[0] if incident == "known" else incident,  # type: ignore[arg-type]
        verdict=verdict,  # type: ignore[arg-type]
        reason="x",
    )
    assert said in notes(fleet, "refused")[-1].text


def test_a_record_is_the_same_after_a_restart(fleet: World) -> None:
    close(fleet, hit(fleet, 1, 2, 3), "wrong")
    before = fleet.core.view()
    fleet.restart()
    fleet.run(40)
    after = fleet.core.view()
    assert (after.precision, after.demoted) == (before.precision, before.demoted)
    assert len(after.demoted) == 1


def test_verdicts_older_than_the_history_say_nothing(fleet: World) -> None:
    close(fleet, hit(fleet, 1), "wrong")
    assert of_rule(fleet.core._fleet.ledger, "xid:95", fleet.now + 29 * 86400.0).ratio is None


@pytest.mark.parametrize(
    ("right", "judged", "low", "high"),
    [(10, 10, 0.7225, 1.0), (0, 10, 0.0, 0.2775), (8, 10, 0.4902, 0.9433), (1, 1, 0.2065, 1.0)],
)
def test_the_interval_is_wilsons(right: int, judged: int, low: float, high: float) -> None:
    assert wilson(right, judged) == pytest.approx((low, high), abs=5e-4)
