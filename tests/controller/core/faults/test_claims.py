"""A GPU that two nodes list stays with the one that has it, until that one is silent or lists it no longer."""

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from controller.core.core import Core
from controller.core.fleet.claims import CODE
from controller.core.fleet.settings import Settings
from controller.core.fleet.stimuli import Arrived, Deployment, Recalled
from tests.sim.node import Node
from tests.sim.world import World
from vocab.events import Cleared, rfc3339
from vocab.lines import ConditionLine, EventLine, HoldLine, Subject
from vocab.messages import ClearedItem, NodeFacts

SILENT_S = 30.0  # long enough to be called silent


class Claimant(Node):
    """A node that may list other GPUs, or none for a reason."""

    blind_because: str | None = None

    def facts(self) -> NodeFacts:
        facts = super().facts()
        if self.blind_because is not None:
            return replace(facts, gpus=(), unknown_because=self.blind_because)
        return facts


def fleet(count: int = 3) -> tuple[World, list[Claimant]]:
    nodes = [Claimant(f"n{n + 1}", 2) for n in range(count)]
    world = World(nodes, (Deployment(name="idle", replicas=0),), Settings())
    world.run(12)
    return world, nodes


def owner(world: World, uuid: str) -> list[str]:
    return [node.node for node in world.core.view().nodes for gpu in node.gpus if gpu.uuid == uuid]


def refused(world: World) -> set[tuple[str, str]]:
    """Which node's claims to what are refused."""
    last = {line.id: line for line in world.lines if isinstance(line, ConditionLine) and line.code == CODE}
    return {(line.subject.node or "", line.device or "") for line in last.values() if line.state != "cleared"}


def claim(world: World, node: Claimant, uuid: str, seconds: float = 6) -> None:
    node.gpus = (*node.gpus, uuid)
    world.run(seconds)


def test_a_claim_to_what_a_live_node_lists_is_refused_and_said_of_the_claimant() -> None:
    world, (n1, n2, _) = fleet()
    world.ask("hold", gpu=n1.gpus[0], reason="being looked at")
    claim(world, n2, n1.gpus[0])
    assert owner(world, n1.gpus[0]) == ["n1"]
    assert refused(world) == {("n2", f"gpu:{n1.gpus[0]}")}
    condition = next(line for line in world.lines if isinstance(line, ConditionLine) and line.code == CODE)
    (event,) = [line.event for line in world.lines if isinstance(line, EventLine) and line.event.id in condition.events]
    assert condition.subject == Subject(node="n2")
    assert "n1 has" in event.text
    assert event.fields == {"gpu": n1.gpus[0], "owner": "n1"}
    assert [line.owner for line in world.lines if isinstance(line, HoldLine)] == ["operator"], "nobody is held for it"
    assert world.core.desired("n2").holds == (), "the hold is where the GPU is"  # type: ignore[union-attr]


def test_a_card_that_has_moved_is_where_it_is_listed_now() -> None:
    world, (n1, n2, _) = fleet()
    card, n1.gpus = n1.gpus[0], n1.gpus[1:]
    claim(world, n2, card)
    assert (owner(world, card), refused(world)) == (["n2"], set())


def test_a_claim_is_granted_once_the_owner_lists_the_gpu_no_longer() -> None:
    world, (n1, n2, _) = fleet()
    card = n1.gpus[0]
    claim(world, n2, card)
    n1.gpus = n1.gpus[1:]
    world.run(4)
    assert (owner(world, card), refused(world)) == (["n2"], set())


def test_a_claim_is_granted_once_the_owner_is_silent_and_then_the_old_owners_is_refused() -> None:
    world, (n1, n2, _) = fleet()
    card = n1.gpus[0]
    claim(world, n2, card)
    n1.silent = True
    world.run(SILENT_S)
    assert (owner(world, card), refused(world)) == (["n2"], {("n1", f"gpu:{card}")})
    n1.silent = False
    world.run(SILENT_S)
    assert owner(world, card) == ["n2"]
    n2.gpus = n2.gpus[:2]
    world.run(4)
    assert (owner(world, card), refused(world)) == (["n1"], set())


@pytest.mark.parametrize("backwards", [False, True])
def test_after_a_restart_who_had_it_has_it_whatever_the_order_of_what_is_recalled(*, backwards: bool) -> None:
    for granted in (False, True):
        world, (n1, n2, _) = fleet()
        card = n1.gpus[0]
        claim(world, n2, card)
        if granted:
            n1.silent = True
            world.run(SILENT_S)
        before = owner(world, card)
        world.stored_facts = dict(sorted(world.stored_facts.items(), reverse=backwards))
        world.restart()
        assert owner(world, card) == before
        world.run(SILENT_S)
        assert owner(world, card) == before == (["n2"] if granted else ["n1"])


def test_a_claim_made_just_after_a_restart_does_not_count_the_wait_for_the_owner_as_its_silence() -> None:
    world, (n1, n2, n3) = fleet()
    claim(world, n2, n1.gpus[0])
    n1.silent = n3.silent = True
    world.restart()
    world.run(20)  # more than its silence may last
    assert owner(world, n1.gpus[0]) == ["n1"]
    n1.silent = n3.silent = False
    world.run(SILENT_S)
    assert owner(world, n1.gpus[0]) == ["n1"]


def test_a_node_that_cannot_read_its_gpus_gives_none_up_not_even_over_a_restart() -> None:
    world, (n1, n2, _) = fleet()
    card = n1.gpus[0]
    claim(world, n2, card)
    n1.blind_because = "the driver does not answer"
    world.run(SILENT_S)
    assert owner(world, card) == ["n1"]
    world.restart()
    world.run(SILENT_S)
    assert owner(world, card) == ["n1"]
    n1.blind_because = None
    world.run(4)
    assert owner(world, card) == ["n1"]


def test_a_claim_that_is_no_longer_made_is_over() -> None:
    world, (n1, n2, _) = fleet()
    claim(world, n2, n1.gpus[0])
    n2.gpus = n2.gpus[:2]
    world.run(4)
    assert (owner(world, n1.gpus[0]), refused(world)) == (["n1"], set())


def test_the_claimant_cannot_end_what_is_said_of_its_claim() -> None:
    world, (n1, n2, _) = fleet()
    claim(world, n2, n1.gpus[0])
    said = next(line for line in world.lines if isinstance(line, ConditionLine) and line.code == CODE)
    for event in (said.events[0], None):
        at = rfc3339(world.now)
        over = Cleared(
            at=at, node="n2", boot_id=None, gpu=None, device=said.device, code=CODE, by="signal", event=event
        )
        world.tell(Arrived(node="n2", item=ClearedItem(over)))
    assert refused(world) == {("n2", f"gpu:{n1.gpus[0]}")}


def test_a_repair_takes_no_gpu_of_another_node_though_a_reset_group_names_it() -> None:
    world, (n1, n2, _) = fleet()
    n2.obeys, n2.group = True, 3
    claim(world, n2, n1.gpus[0])
    n2.hit(n2.gpus[0], "xid:95", world.now)
    world.run(20)
    assert not [line for line in world.lines if n1.gpus[0] in {each.gpu for each in getattr(line, "disrupts", ())}]


def test_a_follower_has_each_gpu_where_the_leader_has_it() -> None:
    """Another controller's core hears the nodes in another order, and folds the lines that are stored."""
    world, (n1, n2, _) = fleet()
    card = n1.gpus[0]
    claim(world, n2, card)
    follower = Core(Settings())
    for node in (n2, n1):
        follower.see(Recalled(facts=node.facts()), world.now)
    for line in world.lines:
        follower.fold(line)
    assert [node.node for node in follower.view().nodes for gpu in node.gpus if gpu.uuid == card] == ["n1"]


Move = tuple[str, int, int]
moves = st.lists(
    st.tuples(st.sampled_from(("claim", "drop", "report", "restart", "blind")), st.integers(0, 2), st.integers(0, 1)),
    max_size=14,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(moves, st.permutations(range(3)))
def test_no_gpu_changes_hands_while_its_owner_is_live_and_lists_it(plays: list[Move], order: Sequence[int]) -> None:
    world, nodes = fleet()
    theirs = {node.name: node.gpus for node in nodes}
    for what, whose, which in plays:
        node = nodes[whose]
        others = [uuid for each in nodes if each is not node for uuid in theirs[each.name]]
        if what == "claim":
            node.gpus = (*theirs[node.name], *others[which : which + 3])
        elif what == "drop":
            node.gpus = theirs[node.name]
        elif what == "blind":
            node.blind_because = None if node.blind_because else "no driver"
        elif what == "restart":
            names = [nodes[place].name for place in order]
            world.stored_facts = {name: world.stored_facts[name] for name in names}
            world.restart()
        world.nodes = {nodes[place].name: nodes[place] for place in (order if which else reversed(order))}
        world.run(2)
        for each in nodes:
            for uuid in theirs[each.name]:
                assert owner(world, uuid) == [each.name], (uuid, what)
