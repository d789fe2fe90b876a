"""Silence is unknown, never a fault. Lost is what others say too."""

from controller.core.core import Core
from controller.core.fleet.settings import REBOOT_TTL_S
from controller.core.fleet.stimuli import Deployment, NodeReported, Reached, Reported
from tests.controller.core.conftest import MakeWorld
from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import HoldLine, NoteLine, StateLine
from vocab.messages import NodeFacts
from vocab.states import ActionKind


def words(world: World, node: str) -> list[str]:
    return [line.to for line in world.lines if isinstance(line, StateLine) and line.subject.node == node]


def test_a_silent_node_is_unknown_after_fifteen_seconds_and_nothing_is_done(make_world: MakeWorld) -> None:
    world = make_world(nodes=2)
    before = len(world.ordered())
    world.nodes["n1"].silent = True
    silent_at = world.now
    world.run(300)
    line = next(line for line in world.lines if isinstance(line, StateLine) and line.to == "unknown")
    assert line.subject.node == "n1"
    assert line.at == silent_at + 15.0
    assert len(world.ordered()) == before
    assert not [line for line in world.lines if isinstance(line, HoldLine)]


def test_the_gpus_of_a_silent_node_are_unknown_as_soon_as_it_is_and_nothing_holds_them(make_world: MakeWorld) -> None:
    world = make_world(nodes=2)
    node = world.nodes["n1"]
    node.silent = True
    for _ in range(120):
        world.run(1)
        seen = {each.node: each for each in world.core.view().nodes}["n1"]
        expected = "healthy" if seen.state == "live" else "unknown"
        assert {(gpu.state, gpu.fresh) for gpu in seen.gpus} == {(expected, expected == "healthy")}
    silent = [line for line in world.lines if isinstance(line, StateLine) and line.to == "unknown"]
    assert {line.at for line in silent} == {silent[0].at}
    assert {line.why for line in silent if line.subject.gpu is not None} == {"its node is unknown"}
    assert world.core.view().counts["in_service"] == len(world.nodes["n2"].gpus)
    assert not [line for line in world.lines if isinstance(line, HoldLine)]
    node.silent = False
    world.run(3)
    assert {gpu.state for each in world.core.view().nodes for gpu in each.gpus} == {"healthy"}


def test_of_the_nodes_that_are_silent_it_is_said_where_their_agents_were() -> None:
    core = Core()
    core.take(NodeReported(facts=NodeFacts(node="n0", boot_id="b", address="http://n0:1")), 100.0)
    assert core.silent() == {}  # nobody has waited for its report yet
    for name, address in (("n1", "http://n1:1"), ("n2", "http://n2:1"), ("n3", "")):
        core.take(NodeReported(facts=NodeFacts(node=name, boot_id="b", address=address)), 100.0)
        core.take(Reported(node=name), 100.0)
    core.take(Reported(node="n2"), 110.0)
    assert core.silent() == {}
    core.tick(120.0)
    assert core.silent() == {"n1": "http://n1:1"}


def test_after_a_restart_gpus_of_a_node_that_has_not_come_yet_are_unknown_and_nothing_is_said(
    make_world: MakeWorld,
) -> None:
    world = make_world(nodes=2)
    world.nodes["n1"].silent = True
    world.restart()
    said = len(world.lines)
    world.run(30)
    seen = {each.node: each for each in world.core.view().nodes}["n1"]
    assert (seen.state, {gpu.state for gpu in seen.gpus}) == ("unknown", {"unknown"})
    assert [line for line in world.lines[said:] if isinstance(line, StateLine) and line.subject.gpu is not None] == []
    world.nodes["n1"].silent = False
    world.run(6)
    assert {gpu.state for each in world.core.view().nodes for gpu in each.gpus} == {"healthy"}
    assert [line for line in world.lines[said:] if isinstance(line, StateLine) and line.subject.gpu is not None] == []


def test_what_runs_on_a_silent_node_is_not_counted_on_when_another_replica_is_to_go(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=2, min_ready=1), nodes=2, gpus=1)
    world.nodes["n1"].silent = True
    world.run(20)
    world.ask("drain", node="n2", reason="look")
    world.run(60)
    assert world.ordered(ActionKind.DRAIN) == []
    world.nodes["n1"].silent = False
    world.run(6)
    assert len(world.ordered(ActionKind.DRAIN)) == 1


def test_a_node_that_reports_seldom_is_waited_for_longer(make_world: MakeWorld) -> None:
    from controller.core.fleet.nodes import Node as Known

    known = Known("slow")
    for at in range(0, 200, 20):
        known.report(float(at), paused=False)
    assert known.silence_s == 60.0


def test_one_late_report_does_not_change_what_is_usual() -> None:
    from controller.core.fleet.nodes import Node as Known

    known = Known("n")
    for at in [0, 2, 4, 6, 8, 108, 110, 112]:
        known.report(float(at), paused=False)
    assert known.silence_s == 15.0


def test_a_node_that_two_others_cannot_reach_is_lost_and_replaced_elsewhere(make_world: MakeWorld) -> None:
    world = make_world(nodes=2)
    lost = next(replica.node for replica in world.core.view().replicas if replica.deployment == "pair")
    world.nodes[lost].silent = True
    world.run(20)
    for by in ("gateway", "controller"):
        world.tell(Reached(of=lost, by=by, ok=False))
    world.run(20)
    assert words(world, lost) == ["live", "unknown", "lost"]
    ready = [replica for replica in world.core.view().replicas if replica.state == "ready" and replica.node != lost]
    assert sorted(replica.deployment for replica in ready) == ["chat", "chat", "pair"]
    assert world.ordered(ActionKind.REBOOT_NODE) == []
    assert world.placed() == []


def test_one_observer_is_not_enough(make_world: MakeWorld) -> None:
    world = make_world(nodes=2)
    world.nodes["n1"].silent = True
    world.run(20)
    world.tell(Reached(of="n1", by="gateway", ok=False))
    world.run(20)
    assert words(world, "n1") == ["live", "unknown"]


def test_a_node_that_we_boot_is_not_lost_and_not_held_for_it(make_world: MakeWorld) -> None:
    world = make_world(nodes=2)
    node = world.nodes["n1"]
    node.hit(node.gpus[7], "xid:79", world.now)
    world.run(40)
    world.ask("approve", gpu=node.gpus[7], reason="now", force=True)
    assert [line.subject.node for line in world.ordered(ActionKind.REBOOT_NODE)] == ["n1"]
    node.silent = True
    for _ in range(10):
        for by in ("gateway:g1", "controller"):
            world.tell(Reached(of="n1", by=by, ok=False))
        world.run(6)
    assert words(world, "n1") == ["live", "unknown"]
    node.silent = False
    world.run(10)
    assert words(world, "n1") == ["live", "unknown", "live"]
    assert not [hold for hold in world.core.view().holds if hold.subject.node == "n1"]


def test_a_node_whose_ordered_boot_never_ends_is_lost_after_its_time(make_world: MakeWorld) -> None:
    world = make_world(nodes=2)
    node = world.nodes["n1"]
    node.hit(node.gpus[7], "xid:79", world.now)
    world.run(40)
    world.ask("approve", gpu=node.gpus[7], reason="now", force=True)
    node.silent = True
    world.run(REBOOT_TTL_S + 10)
    for by in ("gateway:g1", "controller"):
        world.tell(Reached(of="n1", by=by, ok=False))
    world.run(10)
    assert words(world, "n1")[-1] == "lost"


def test_a_lost_node_comes_back_held(make_world: MakeWorld) -> None:
    world = make_world(nodes=2)
    node = world.nodes["n1"]
    node.silent = True
    world.run(20)
    for by in ("gateway", "controller"):
        world.tell(Reached(of="n1", by=by, ok=False))
    world.run(60)
    node.silent = False
    world.run(4)
    assert [(hold.subject.node, hold.reason.split(":")[0]) for hold in world.core.view().holds] == [
        ("n1", "returned_unexplained")
    ]


def test_a_gpu_without_readings_is_unknown_after_a_minute_and_not_held(world: World, node: Node) -> None:
    node.blind.add(node.gpus[7])
    last = world.now
    world.run(58)
    assert world.gpu(node.gpus[7]).state == "healthy"
    world.run(4)
    line = world.lines[-1]
    assert isinstance(line, StateLine)
    assert (line.at, line.subject.gpu, line.to) == (last + 60.0, node.gpus[7], "unknown")
    assert not world.gpu(node.gpus[7]).placeable
    assert world.core.view().holds == ()
    node.blind.clear()
    world.run(2)
    assert world.gpu(node.gpus[7]).state == "healthy"


def test_an_old_reading_sent_again_is_not_fresh(world: World, node: Node) -> None:
    from controller.core.fleet.stimuli import Sampled

    node.blind.add(node.gpus[7])
    old = node._sample(node.gpus[7], world.now)
    for _ in range(40):
        world.run(2)
        world.tell(Sampled(node="n1", gpus=(old,)))
    assert world.gpu(node.gpus[7]).state == "unknown"


def test_after_a_restart_nothing_harmful_is_done_until_the_nodes_have_spoken(make_world: MakeWorld) -> None:
    world = make_world(nodes=2)
    for node in world.nodes.values():
        node.silent = node.name == "n2"
    world.restart()
    node = world.nodes["n1"]
    node.hit(node.gpus[7], "xid:95", world.now)
    world.run(28)
    assert not world.core.view().settled
    assert [line for line in world.lines if isinstance(line, HoldLine)] == []
    world.run(4)
    assert len(world.placed()) == 1, "one silent node of two is not waited for any longer"


def test_after_a_restart_a_node_that_speaks_is_enough(make_world: MakeWorld) -> None:
    world = make_world()
    world.restart()
    node = world.nodes["n1"]
    node.hit(node.gpus[7], "xid:95", world.now)
    world.run(2)
    assert len(world.placed()) == 1


def test_a_restart_starts_and_moves_nothing(make_world: MakeWorld) -> None:
    world = make_world(nodes=2)
    before = [line.id for line in world.ordered()]
    for _ in range(3):
        world.restart()
        world.run(40)
    assert [line.id for line in world.ordered()] == before


def test_events_of_an_earlier_boot_are_history(world: World, node: Node) -> None:
    node.hit(node.gpus[0], "xid:79", world.now)
    node.reboot(world.now)
    world.run(10)
    assert world.placed() == []
    assert world.opened() == []


def unreachable(world: World, *nodes: str) -> None:
    for node in nodes:
        for by in ("gateway", "controller"):
            world.tell(Reached(of=node, by=by, ok=False))


def test_a_domain_that_falls_silent_at_once_makes_us_doubt_ourselves(make_world: MakeWorld) -> None:
    from controller.core.fleet.stimuli import Shaped

    world = make_world(nodes=3)
    world.tell(Shaped(domains={"rack1": ("n1", "n2")}))
    before = len(world.ordered())
    for name in ("n1", "n2"):
        world.nodes[name].silent = True
    world.run(10)
    unreachable(world, "n1", "n2")
    world.run(120)
    assert [words(world, name)[-1] for name in ("n1", "n2")] == ["unknown", "unknown"]
    assert len(world.ordered()) == before
    notes = [line.text for line in world.lines if isinstance(line, NoteLine) and line.code == "too_much_sick"]
    assert any("rack1" in note for note in notes)
    world.nodes["n2"].silent = False
    world.run(4)
    unreachable(world, "n1")
    world.run(4)
    assert words(world, "n1")[-1] == "lost", "the rack is there, so it is the node"


def test_a_silent_node_is_no_witness(make_world: MakeWorld) -> None:
    world = make_world(nodes=4)
    for name in ("n1", "n2"):
        world.nodes[name].silent = True
    world.run(20)
    world.tell(Reached(of="n1", by="gateway", ok=False))
    world.tell(Reached(of="n1", by="n2", ok=False))
    world.run(4)
    assert words(world, "n1")[-1] == "unknown"


def test_a_node_that_returns_is_let_in_once_its_gpus_are_validated(make_world: MakeWorld) -> None:
    world = make_world(nodes=2)
    node = world.nodes["n1"]
    node.silent = node.obeys = True
    world.run(20)
    unreachable(world, "n1")
    world.run(10)
    node.silent = False
    world.run(20)
    validated = [line.subject.gpu for line in world.ordered(ActionKind.VALIDATE)]
    assert sorted(map(str, validated)) == sorted(node.gpus)
    assert world.core.view().holds == ()
    assert world.core.view().incidents == ()


def test_at_level_observe_a_node_that_returns_is_only_said_to_be_held(make_world: MakeWorld) -> None:
    from vocab.states import Level

    world = make_world(nodes=2, level=Level.OBSERVE)
    world.nodes["n1"].silent = True
    world.run(20)
    unreachable(world, "n1")
    world.run(10)
    world.nodes["n1"].silent = False
    world.run(10)
    assert {line.op for line in world.lines if isinstance(line, HoldLine)} <= {"would_place"}
    assert world.core.view().incidents == ()
