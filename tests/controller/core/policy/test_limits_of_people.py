"""People's orders fit into the same limits as automation's: refused with the limit in the answer, unless forced."""

import msgspec
import pytest

from controller.core.fleet.settings import Limits, Settings
from controller.core.fleet.stimuli import Asked, Declared, Deployment, Replicas, Shaped
from controller.deciding.verdict import verdict
from tests.controller.core.conftest import MakeWorld
from tests.sim.world import World
from vocab.events import rfc3339
from vocab.lines import ActionLine, HoldLine, NoteLine, Subject
from vocab.messages import ReplicaStatus
from vocab.observations import Member
from vocab.states import ActionKind, ActionState

CHAT = Deployment(name="chat", replicas=4, min_ready=3)
TIGHT = Settings(limits=Limits(cordons=2))


def held(world: World) -> list[str]:
    return [hold.subject.gpu or hold.subject.node or "" for hold in world.core.view().holds]


def test_a_hold_over_the_budget_is_refused_with_the_limit_and_placed_by_force(make_world: MakeWorld) -> None:
    world = make_world(nodes=4, gpus=2, settings=TIGHT)
    for name in ("n1", "n2"):
        world.ask("hold", node=name, reason="new cable")
    (refused,) = world.ask("hold", node="n3", reason="new cable")
    assert isinstance(refused, HoldLine)
    assert (refused.op, "2 of 2 nodes of the fleet newly cordoned" in refused.reason) == ("refused", True)
    assert held(world) == ["n1", "n2"]
    said = world.ask("hold", node="n3", reason="new cable", force=True)
    assert held(world) == ["n1", "n2", "n3"]
    assert verdict(said).text.endswith("on node:n3, by force: 2 of 2 nodes of the fleet newly cordoned in 600 s")


def test_a_refusal_says_from_when_there_is_room_again_and_how_to_go_over_it(make_world: MakeWorld) -> None:
    world = make_world(nodes=1, gpus=8)
    first = world.now
    for index in range(4):
        world.ask("hold", gpu=f"GPU-n1-{index}", reason="fan")
        world.run(10)
    (refused,) = world.ask("hold", gpu="GPU-n1-4", reason="fan")
    assert isinstance(refused, HoldLine)
    again = first + 601
    told = f"there is room again from {rfc3339(again)[:19]}Z on; with force (--force) it is held all the same"
    assert refused.reason.endswith(told)
    world.run(again - world.now)
    world.ask("hold", gpu="GPU-n1-4", reason="fan")
    assert len(held(world)) == 5


def test_what_is_held_already_takes_no_more_room_whoever_holds_it(make_world: MakeWorld) -> None:
    world = make_world(nodes=4, gpus=2, settings=TIGHT)
    for name in ("n1", "n2"):
        world.ask("hold", node=name, reason="new cable")
    world.ask("hold", gpu="GPU-n2-1", reason="a look", owner="ops")
    world.ask("hold", node="n1", reason="fans")
    assert len(held(world)) == 4


def test_room_comes_back_with_time_with_a_lift_and_when_somebody_has_looked(make_world: MakeWorld) -> None:
    world = make_world(nodes=4, gpus=2, settings=TIGHT)
    for name in ("n1", "n2"):
        world.ask("hold", node=name, reason="new cable")
    world.ask("lift", node="n1", reason="done")
    world.ask("hold", node="n3", reason="new cable")
    assert held(world) == ["n2", "n3"]
    world.tell(Asked(do="discard_backlog", by="ada", reason="seen"))
    world.ask("hold", node="n1", reason="new cable")
    world.run(601)
    world.ask("hold", node="n4", reason="new cable")
    assert held(world) == ["n2", "n3", "n1", "n4"]


def test_the_view_tells_what_is_used_of_each_budget(make_world: MakeWorld) -> None:
    world = make_world(nodes=4, gpus=2, settings=TIGHT)
    world.tell(Shaped(pools={"a": ("n1", "n2"), "b": ("n3", "n4")}, domains={"rack 1": ("n1",), "rack 2": ("n2",)}))
    world.ask("hold", node="n1", reason="new cable")
    told = {name: (each.used, each.limit) for name, each in world.core.view().budgets.items()}
    assert told == {
        "cordons of the fleet": (1, 2),
        "cordons of pool a": (1, 2),
        "cordons of pool b": (0, 2),
        "cordons of domain rack 1": (1, 1),
        "repairs": (0, 2),
    }


def test_gpus_of_one_node_are_counted_too(make_world: MakeWorld) -> None:
    world = make_world(nodes=1, gpus=8)
    for index in range(4):
        world.ask("hold", gpu=f"GPU-n1-{index}", reason="fan")
    (refused,) = world.ask("hold", gpu="GPU-n1-4", reason="fan")
    assert isinstance(refused, HoldLine)
    assert "4 of 4 GPUs of n1 newly cordoned" in refused.reason
    world.ask("hold", node="n1", reason="the whole node is one place")
    assert held(world)[-1] == "n1"


def test_what_people_hold_leaves_automation_less_room(make_world: MakeWorld) -> None:
    world = make_world(nodes=4, gpus=2, settings=TIGHT)
    for name in ("n1", "n2"):
        world.ask("hold", node=name, reason="new cable", owner="ops")
    world.nodes["n3"].hit("GPU-n3-0", "xid:95", world.now)
    world.run(4)
    assert world.placed() == []
    world.ask("lift", node="n1", owner="ops", reason="done")
    world.nodes["n3"].hit("GPU-n3-0", "xid:95", world.now)
    world.run(4)
    assert [hold.subject.gpu for hold in world.placed()] == ["GPU-n3-0"]


@pytest.mark.parametrize("do", ["drain", "maintain"])
def test_a_drain_or_maintenance_that_finds_no_room_moves_nothing(make_world: MakeWorld, do: str) -> None:
    world = make_world(CHAT, nodes=4, gpus=2, settings=TIGHT)
    free = next(name for name in world.nodes if not world.core._fleet.roster.at(name))
    busy = [name for name in world.nodes if name != free]
    for name in (free, busy[0]):
        world.ask("hold", node=name, reason="new cable")
    asked = Asked(do=do, by="ada", reason="fans", node=busy[1], until=world.now + 600.0)
    seen = world.core.preview(asked, world.now)
    assert seen.refused is not None
    assert "2 of 2 nodes" in seen.refused
    assert "2 of 2 nodes" in str(verdict(world.tell(asked)).refused)
    assert world.actions(ActionKind.DRAIN) == []
    forced = Asked(do=do, by="ada", reason="fans", node=busy[1], until=world.now + 600.0, force=True)
    seen = world.core.preview(forced, world.now)
    assert [budget.of for budget in seen.budgets] == ["nodes of the fleet newly cordoned in 600 s"]
    world.tell(forced)
    assert world.actions(ActionKind.DRAIN) != []


def test_force_takes_no_deployment_under_its_floor_by_a_drain(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=2, min_ready=2), gpus=2)
    world.ask("drain", node="n1", reason="fans", force=True)
    world.ask("drain", node="n1", reason="fans", force=True)
    world.run(300)
    assert world.ordered(ActionKind.DRAIN) == []


def test_a_drain_under_way_goes_on_under_force_and_ends_when_it_is_cut_short(make_world: MakeWorld) -> None:
    world = make_world(CHAT, nodes=2, gpus=2)
    going = world.core.view().replicas[0].replica
    world.ask("drain", replica=going, reason="fans")
    assert until_ordered(world).subject == Subject(replica=going)
    world.ask("drain", replica=going, reason="fans", force=True)
    assert world.actions(ActionKind.DRAIN)[-1].state is ActionState.ORDERED
    world.ask("drain", replica=going, reason="fans", cut_short=True)
    (drain,) = {line.id: line for line in world.actions(ActionKind.DRAIN)}.values()
    assert (drain.state, drain.why) == (ActionState.TIMED_OUT, "cut short by ada: fans")
    world.ask("drain", replica=going, reason="fans", cut_short=True)
    assert world.actions(ActionKind.DRAIN)[-1] == drain


def until_ordered(world: World) -> ActionLine:
    """The first drain that is ordered."""
    for _ in range(60):
        if ordered := world.ordered(ActionKind.DRAIN):
            return ordered[0]
        world.run(1)
    raise AssertionError("no drain was ordered")


def test_an_approval_under_a_floor_is_refused_with_it_and_done_by_force(make_world: MakeWorld) -> None:
    world = make_world(CHAT)
    node = world.nodes["n1"]
    node.hit(node.gpus[7], "xid:79", world.now)
    world.run(10)
    (waiting,) = [action for action in world.core.view().actions if action.of is ActionKind.REBOOT_NODE]
    (refused,) = world.ask("approve", action=waiting.id, reason="tonight")
    assert isinstance(refused, NoteLine)
    assert "0 of 3 replicas of chat that serve" in refused.text
    assert world.ordered(ActionKind.REBOOT_NODE) == []
    said = world.ask("approve", action=waiting.id, reason="tonight", force=True)
    (ordered,) = world.ordered(ActionKind.REBOOT_NODE)
    assert ordered.budget is not None
    assert (ordered.budget.used, ordered.budget.limit) == (0, 3)
    assert "by force: 0 of 3 replicas of chat that serve" in verdict(said).text


def test_an_approval_names_what_it_takes_as_things_are_by_then(make_world: MakeWorld) -> None:
    chat = Deployment(name="chat", replicas=2, min_ready=0)
    world = make_world(chat, gpus=3)
    node = world.nodes["n1"]
    node.hit(next(gpu for gpu in node.gpus if world.replica_on(gpu) is None), "xid:79", world.now)
    world.run(10)
    (waiting,) = [action for action in world.core.view().actions if action.of is ActionKind.REBOOT_NODE]
    assert sum(subject.replica is not None for subject in waiting.disrupts) == 2
    world.tell(Declared(deployment=msgspec.structs.replace(chat, replicas=1)))
    world.run(30)
    world.ask("approve", action=waiting.id, reason="tonight")
    (ordered,) = world.ordered(ActionKind.REBOOT_NODE)
    assert sum(subject.replica is not None for subject in ordered.disrupts) == 1


def test_what_an_approved_repair_takes_serves_nobody_when_the_next_is_approved(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=4, gpus_per_replica=2, min_ready=3), nodes=4, gpus=3)
    for name in ("n1", "n2"):
        node = world.nodes[name]
        node.hit(next(gpu for gpu in node.gpus if world.replica_on(gpu) is None), "xid:79", world.now)
        world.run(10)
    first, second = (action for action in world.core.view().actions if action.of is ActionKind.REBOOT_NODE)
    world.ask("approve", action=first.id, reason="tonight")
    (refused,) = world.ask("approve", action=second.id, reason="tonight")
    assert isinstance(refused, NoteLine)
    assert "2 of 3 replicas of chat that serve" in refused.text
    assert [action.id for action in world.ordered(ActionKind.REBOOT_NODE)] == [first.id]


def test_an_approval_asks_for_what_came_onto_the_faults_own_gpu(make_world: MakeWorld) -> None:
    side = Deployment(name="side", replicas=1, min_ready=1, managed_by="none")
    world = make_world(Deployment(name="chat", replicas=1, min_ready=0), side, gpus=2)
    node = world.nodes["n1"]
    ill = next(gpu for gpu in node.gpus if world.replica_on(gpu) is None)
    node.hit(ill, "probe_hung", world.now)
    world.run(10)
    (waiting,) = [action for action in world.core.view().actions if action.of is ActionKind.REBOOT_NODE]
    found = ReplicaStatus(
        replica="side-1",
        deployment="side",
        members=(Member(node="n1", gpu=ill, rank=0),),
        phase="ready",
        ready=True,
        stepping=True,
        observed=True,
    )
    world.tell(Replicas(node="n1", statuses=(found,), whole=False))
    (refused,) = world.ask("approve", action=waiting.id, reason="tonight")
    assert isinstance(refused, NoteLine)
    assert "0 of 1 replicas of side that serve" in refused.text
