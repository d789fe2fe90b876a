"""A rehearsal plays a stored past under another policy: what comes is what came, repairs work, nothing is doubled."""

from controller.core.decided import Tally, compared
from controller.core.fleet.settings import Limits, Rule, Settings
from controller.core.fleet.stimuli import Shaped
from controller.core.rehearsal import Rehearsal, Scene, Told
from tests.sim.node import Node
from vocab.events import Event
from vocab.messages import EventItem, NodeFacts
from vocab.states import Level

T0 = 1_796_000_000.0


Past = tuple[Scene, list[Told]]


def past(*hits: tuple[float, str, int, str], nodes: int = 4, level: Level = Level.REPAIR) -> Past:
    """Faults at these seconds, on these nodes and GPUs."""
    made = {f"n{number + 1}": Node(f"n{number + 1}", 2, level) for number in range(nodes)}
    told = []
    for after, node, gpu, code in hits:
        event: Event = made[node].hit(made[node].gpus[gpu], code, T0 + after)
        told.append(Told(T0 + after, EventItem(event)))
        made[node].faults.clear()  # each is a fault of its own
    facts = tuple(node.facts() for node in made.values())
    return Scene(facts=facts, shape=Shaped()), told


def rehearse(settings: Settings, story: Past) -> Tally:
    scene, told = story
    rehearsal = Rehearsal(settings, scene)
    for each in told:
        rehearsal.hear(each)
    rehearsal.end()
    return rehearsal.tally


def kinds(tally: Tally) -> dict[tuple[str, str, str], int]:
    return {(of, rule, place): count for (rule, of, place), count in tally.counts.items()}


def holds(tally: Tally) -> int:
    return sum(count for (_, of, _), count in tally.counts.items() if of == "hold")


def test_a_fault_is_held_and_repaired_once_whatever_the_level_of_its_node_was() -> None:
    story = past((0, "n1", 0, "xid:95"), level=Level.OBSERVE)
    assert kinds(rehearse(Settings(), story)) == {
        ("hold", "xid:95", "GPU-n1-0"): 1,
        ("reset_gpu", "xid:95", "GPU-n1-0"): 1,
    }


def test_the_level_of_the_policy_itself_counts() -> None:
    story = past((0, "n1", 0, "xid:95"))
    assert kinds(rehearse(Settings(level=Level.OBSERVE), story)) == {}
    assert kinds(rehearse(Settings(level=Level.CORDON), story)) == {("hold", "xid:95", "GPU-n1-0"): 1}


def test_a_fault_that_comes_back_after_its_repair_is_decided_again() -> None:
    story = past((0, "n1", 0, "xid:95"), (7200, "n1", 0, "xid:95"))
    found = kinds(rehearse(Settings(), story))
    assert found["hold", "xid:95", "GPU-n1-0"] == 2


def test_budgets_count_as_they_would_have() -> None:
    story = past(*((n, f"n{n}", 0, "xid:95") for n in (1, 2, 3, 4)))
    few = rehearse(Settings(limits=Limits(cordons=1)), story)
    many = rehearse(Settings(limits=Limits(cordons=4, cordons_ratio=1.0)), story)
    assert holds(few) < holds(many) == 4


def test_a_gpu_that_has_left_and_an_earlier_boot_are_as_they_were_then() -> None:
    scene, told = past((0, "n1", 1, "xid:95"))
    facts = tuple(
        NodeFacts(node=each.node, boot_id="a later boot", gpus=each.gpus[:1], level=each.level) for each in scene.facts
    )
    gone = (Scene(facts=facts, shape=scene.shape), told)
    assert ("hold", "xid:95", "GPU-n1-1") in kinds(rehearse(Settings(), gone))


def test_without_a_past_nothing_is_decided() -> None:
    assert kinds(rehearse(Settings(), past())) == {}


def test_what_only_one_policy_decides_is_counted_by_rule_and_named_by_place() -> None:
    story = past((0, "n1", 0, "xid:95"), (900, "n2", 0, "xid:48"))
    quiet = Settings(rules={"xid:48": Rule(shadow=True)})
    counts = {(each.rule, each.of): each for each in compared(rehearse(Settings(), story), rehearse(quiet, story))}
    assert (counts["xid:48", "hold"].before, counts["xid:48", "hold"].after) == (1, 0)
    assert counts["xid:48", "hold"].places == ("GPU-n2-0",)
    assert (counts["xid:95", "hold"].before, counts["xid:95", "hold"].places) == (1, ())


def test_the_same_past_gives_the_same_decisions() -> None:
    story = past((0, "n1", 0, "xid:79"), (5, "n2", 1, "xid:48"), (4000, "n1", 0, "xid:95"))
    assert kinds(rehearse(Settings(), story)) == kinds(rehearse(Settings(), story))
