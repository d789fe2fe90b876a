"""What an order would do: the same that it then does, and nothing is done by asking."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.core.fleet.stimuli import Asked, Deployment
from controller.core.preview import Preview
from tests.controller.core.conftest import MakeWorld
from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import ActionLine, AnyLine, Budget, HoldLine
from vocab.states import ActionKind, ActionState

CHAT = Deployment(name="chat", replicas=4, min_ready=3, prestop_s=5.0, drain_s=120.0, kill_s=10.0)


def ahead(world: World, do: str, **more: object) -> Preview:
    return world.core.preview(Asked(do=do, by="ada", **more), world.now)  # type: ignore[arg-type]


def test_a_drain_names_who_goes_where_to_what_is_in_flight_and_how_long_it_takes(make_world: MakeWorld) -> None:
    world = make_world(CHAT)
    replica = world.core.view().replicas[0]
    node = world.nodes["n1"]
    node.processes[replica.replica].requests = 7
    world.run(2)
    seen = ahead(world, "drain", gpu=replica.gpus[0], reason="riser")
    (move,) = seen.moves
    assert (move.replica, move.where.gpus, move.requests) == (replica.replica, replica.gpus, 7)
    assert move.to is not None
    assert move.to.gpus[0] not in {gpu for each in world.core.view().replicas for gpu in each.gpus}
    assert (move.drain_s, move.start_s, move.at_once) == (135.0, 4.0, False)
    assert [(f.deployment, f.ready, f.without, f.min_ready) for f in seen.floors] == [("chat", 4, 3, 3)]
    assert [hold.subject.gpu for hold in seen.held] == [replica.gpus[0]]
    assert (seen.requests, seen.longest_s) == (7, 135.0)


def test_a_drain_without_a_spare_says_what_its_replacement_waits_for(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=8, min_ready=8))
    (move,) = ahead(world, "drain", gpu=world.nodes["n1"].gpus[0], reason="riser").moves
    assert move.to is None
    assert move.waits is not None
    assert "no GPU is free" in move.waits
    assert not move.at_once, "it stays until it can be spared"


def test_of_a_group_it_names_the_nodes_that_all_of_it_leaves_together(make_world: MakeWorld) -> None:
    wide = Deployment(name="wide", gpus_per_replica=4, nodes_per_replica=2)
    world = make_world(wide, nodes=4, gpus=2)
    (replica,) = world.core.view().replicas
    leader, other = replica.nodes
    seen = ahead(world, "drain", gpu=f"GPU-{other}-0", reason="riser")
    assert seen.groups == {replica.replica: (leader, other)}
    (move,) = seen.moves
    assert move.to is not None
    assert [list(place.by_node) for place in (move.where, move.to)] == [
        [leader, other],
        list(dict.fromkeys(move.to.nodes)),
    ]
    world.ask("drain", gpu=f"GPU-{other}-0", reason="riser")
    world.run(60)
    assert any(
        line.why.endswith(f"its members on {leader} and {other} leave together")
        for line in world.ordered(ActionKind.DRAIN)
    )


def test_under_a_hold_replicas_serve_on(make_world: MakeWorld) -> None:
    world = make_world(CHAT)
    replica = world.core.view().replicas[0]
    seen = ahead(world, "hold", gpu=replica.gpus[0], reason="fan")
    assert (seen.moves, seen.stays, len(seen.held)) == ((), (replica.replica,), 1)


@pytest.mark.parametrize("do", ["hold", "drain"])
def test_what_holds_says_what_is_then_used_of_each_budget_also_where_there_is_room(
    make_world: MakeWorld, do: str
) -> None:
    world = make_world(CHAT, nodes=2)
    world.ask("hold", gpu="GPU-n1-6", reason="fan")
    seen = ahead(world, do, gpu="GPU-n1-7", reason="fan")
    assert [(each.of, each.used, each.limit) for each in seen.budgets] == [
        ("GPUs of n1 newly cordoned in 600 s", 2, 4),
        ("nodes of the fleet newly cordoned in 600 s", 1, 2),
    ]


def test_by_force_it_says_by_how_much_it_goes_over_a_limit(make_world: MakeWorld) -> None:
    world = make_world(CHAT)
    for index in range(4):
        world.ask("hold", gpu=f"GPU-n1-{index}", reason="fan")
    seen = ahead(world, "hold", gpu="GPU-n1-4", reason="fan", force=True)
    assert seen.budgets[0] == Budget(limit=4, used=5, of="GPUs of n1 newly cordoned in 600 s")


def test_an_approval_names_all_that_the_repair_takes_and_the_budget(make_world: MakeWorld) -> None:
    world = make_world(CHAT)
    replicas = world.core.view().replicas
    node = world.nodes["n1"]
    idle = next(gpu for gpu in node.gpus if gpu not in {g for each in replicas for g in each.gpus})
    node.hit(idle, "xid:79", world.now)
    world.run(10)
    (waiting,) = [action for action in world.core.view().actions if action.of is ActionKind.REBOOT_NODE]
    refused = ahead(world, "approve", action=waiting.id)
    assert "0 of 3 replicas of chat that serve: with force (--force)" in str(refused.refused)
    seen = ahead(world, "approve", action=waiting.id, force=True)
    assert {subject.replica for subject in seen.disrupts} >= {each.replica for each in replicas}
    assert {subject.gpu for subject in seen.disrupts} >= set(node.gpus)
    assert {f"n1/{index}" for index in range(8)} == set(seen.places.values())
    assert (refused.disrupts, refused.floors, refused.places) == (seen.disrupts, seen.floors, seen.places)
    assert [(each.id, each.state) for each in refused.ordered] == [(waiting.id, ActionState.WAITING)]
    assert [(f.deployment, f.ready, f.without) for f in seen.floors] == [("chat", 4, 0)]
    assert [(budget.of, budget.limit, budget.used) for budget in seen.budgets] == [
        ("replicas of chat that serve", 3, 0),
        ("repairs at one time", 2, 1),
    ]
    assert seen.longest_s == 1200.0


def test_an_approval_that_no_force_helps_names_what_it_takes_all_the_same(make_world: MakeWorld) -> None:
    world = make_world(CHAT)
    node = world.nodes["n1"]
    busy = {gpu for each in world.core.view().replicas for gpu in each.gpus}
    node.hit(next(gpu for gpu in node.gpus if gpu not in busy), "xid:79", world.now)
    world.run(10)
    (waiting,) = [action for action in world.core.view().actions if action.of is ActionKind.REBOOT_NODE]
    world.ask("pause", reason="look")
    seen = ahead(world, "approve", action=waiting.id, force=True)
    assert "automation is paused" in str(seen.refused)
    assert {subject.gpu for subject in seen.disrupts} >= set(node.gpus)
    assert "chat" in {floor.deployment for floor in seen.floors}


def test_what_would_be_refused_says_why(world: World) -> None:
    seen = ahead(world, "approve", action="a-none")
    assert seen.refused is not None
    assert "no such action waits" in seen.refused


def test_an_undo_names_what_it_lifts_calls_off_and_cannot_undo(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=8, min_ready=8))
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(4)
    seen = ahead(world, "undo", since_s=60.0)
    assert [hold.subject.gpu for hold in seen.lifted] == [node.gpus[0]]
    assert {action.of for action in seen.cancelled} == {ActionKind.DRAIN, ActionKind.START_REPLICA}
    assert [hold.owner for hold in world.core.view().holds] == ["policy"]


def test_an_undo_names_what_cannot_be_taken_back_and_whose_it_is(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=2, min_ready=1))
    node = world.nodes["n1"]
    struck = next(gpu for gpu in node.gpus if world.replica_on(gpu) is not None)
    replica = world.replica_on(struck)
    node.hit(struck, "xid:95", world.now)
    world.run(200)
    told = ahead(world, "undo", since_s=300.0).not_undone
    assert any(text.startswith(f"{replica}: drain") for text in told), told


orders = st.sampled_from(["hold", "drain", "undo", "lift", "cancel", "set_healthy", "discard_backlog", "pause"])
faults = st.lists(st.tuples(st.integers(0, 7), st.sampled_from(["xid:95", "xid:79", "remap_failed"])), max_size=3)


@settings(max_examples=40, deadline=None)
@given(faults, orders, st.integers(0, 7), st.integers(0, 20))
def test_to_ask_changes_nothing_and_foretells_what_is_then_done(
    hits: list[tuple[int, str]], do: str, index: int, wait_s: int
) -> None:
    asked, unasked = (
        World([Node("n1"), Node("n2", 2)], (Deployment(name="chat", replicas=5, min_ready=2),)) for _ in range(2)
    )
    seen = None
    for world in (asked, unasked):
        world.run(12)
        for gpu, code in hits:
            world.nodes["n1"].hit(world.nodes["n1"].gpus[gpu], code, world.now)
            world.run(wait_s)
        named = {} if do in {"undo", "discard_backlog", "pause"} else {"gpu": world.nodes["n1"].gpus[index]}
        more = {**named, "reason": "look", **({"since_s": 100.0} if do == "undo" else {})}
        if world is asked:
            seen = ahead(world, do, **more)
        said = world.ask(do, **more)  # type: ignore[arg-type]
        said += world._store(world.core.tick(world.now))
        if seen is not None and world is asked:
            assert _essence(said) == (seen.held, seen.lifted, {move.replica for move in seen.moves})
        world.run(30)
    assert asked.lines == unasked.lines


def _essence(said: list[AnyLine]) -> tuple[object, ...]:
    held = tuple(line for line in said if isinstance(line, HoldLine) and line.op == "placed")
    lifted = tuple(line for line in said if isinstance(line, HoldLine) and line.op == "lifted")
    coming = {ActionState.ORDERED, ActionState.RUNNING, ActionState.WAITING}
    kinds = {ActionKind.DRAIN, ActionKind.STOP_REPLICA}
    going = {
        line.subject.replica
        for line in said
        if isinstance(line, ActionLine) and line.of in kinds and line.state in coming
    }
    return held, lifted, going


@pytest.mark.parametrize("nodes", [200])
def test_a_copy_of_a_large_fleet_is_no_part_of_it(nodes: int) -> None:
    world = World([Node(f"n{n}") for n in range(nodes)], (Deployment(name="chat", replicas=20, min_ready=2),))
    world.run(6)
    before = world.core.view()
    ahead(world, "drain", node="n0", reason="look")
    assert world.core.view() == before
