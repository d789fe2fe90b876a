"""A rule in shadow only says what it would do, whatever put it there, and whatever else its incident is about."""

from msgspec.structs import replace

from controller.core.fleet.pinned import Kept, Pinned
from controller.core.fleet.settings import Pool, Rule, Settings
from controller.core.fleet.stimuli import Adopted, Deployment, Shaped
from controller.core.replicas.restart import UNWITNESSED_S
from tests.controller.core.conftest import MakeWorld
from tests.sim.world import World
from vocab.catalogue import codes
from vocab.events import Recovery, Severity
from vocab.lines import ActionLine, HoldLine, NoteLine
from vocab.states import ActionKind, ActionState, Level

IDLE = Deployment(name="idle", replicas=0)
CHANGED = "it has changed since the policy was adopted: recovery investigate is reset_gpu"
NOT_ADOPTED = Settings(shadowed={"xid:95": CHANGED})


def would(world: World) -> list[HoldLine]:
    return [line for line in world.lines if isinstance(line, HoldLine) and line.op == "would_place"]


def hit(world: World, code: str, gpu: int = 0) -> None:
    node = world.nodes["n1"]
    node.hit(node.gpus[gpu], code, world.now)
    world.run(4)


def adopt(world: World, settings: Settings) -> None:
    world.settings = settings
    world.tell(Adopted(settings=settings, words="version 2 (v2) adopted by ada: looked at"))
    world.run(4)


def test_a_rule_that_nobody_adopted_says_what_it_would_do_and_why_it_does_not(make_world: MakeWorld) -> None:
    world = make_world(IDLE, settings=NOT_ADOPTED)
    hit(world, "xid:95")
    assert world.placed() == []
    [hold] = would(world)
    assert hold.rule == "xid:95"
    assert hold.reason.endswith(f"not now: the rule for xid:95 is in shadow: {CHANGED}")
    assert {action.state for action in world.actions(ActionKind.RESET_GPU)} == {ActionState.WOULD}


def test_adopted_it_acts_on_what_is_fresh(make_world: MakeWorld) -> None:
    world = make_world(IDLE, settings=NOT_ADOPTED)
    hit(world, "xid:95")
    adopt(world, Settings())
    assert [hold.subject.gpu for hold in world.placed()] == ["GPU-n1-0"]
    assert [line.text for line in world.lines if isinstance(line, NoteLine) and line.code == "policy_adopted"] == [
        "version 2 (v2) adopted by ada: looked at"
    ]


def test_another_code_of_the_incident_acts_by_its_own_rule_and_no_further(make_world: MakeWorld) -> None:
    settings = Settings(shadowed={"xid:79": "it is new since the policy was adopted"})
    world = make_world(IDLE, settings=settings)
    hit(world, "xid:95")
    hit(world, "xid:79")
    assert len(world.opened()) == 1
    [hold] = world.placed()
    assert hold.rule == "xid:95"
    world.run(60)
    orders = [action for action in world.ordered() if action.of in {ActionKind.RESET_GPU, ActionKind.REBOOT_NODE}]
    assert {(action.of, action.rule) for action in orders} == {(ActionKind.RESET_GPU, "catalogue/xid:95")}


def test_an_upgrade_in_the_middle_of_a_repair_stops_what_has_not_begun(make_world: MakeWorld) -> None:
    world = make_world(IDLE)
    hit(world, "xid:95")
    world.settings = NOT_ADOPTED
    world.restart()
    world.run(60)
    assert len(world.placed()) == 1, "what stands stays"
    ordered = [line for line in world.actions(ActionKind.RESET_GPU) if line.state is ActionState.ORDERED]
    assert len(ordered) <= 1


def test_the_shadow_of_a_pool_is_its_own(make_world: MakeWorld) -> None:
    settings = Settings(pools={"test": Pool(rules={"xid:95": Rule(shadow=True)})})
    world = make_world(IDLE, nodes=2, settings=settings)
    world.tell(Shaped(pools={"test": ("n1",)}))
    hit(world, "xid:95")
    node = world.nodes["n2"]
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(4)
    assert [hold.subject.gpu for hold in world.placed()] == ["GPU-n2-0"]
    assert [hold.subject.gpu for hold in would(world)] == ["GPU-n1-0"]


def test_a_replica_that_stands_still_is_not_restarted_by_a_rule_in_shadow(make_world: MakeWorld) -> None:
    world = make_world(settings=Settings(rules={"replica_stalled": Rule(shadow=True)}))
    node = world.nodes["n1"]
    name = world.replica_on(node.gpus[0]) or ""
    node.stalled.add(name)
    node.complain(name, "replica_stalled", world.now, still_since=world.now)
    world.run(UNWITNESSED_S + 10)
    assert [line.state for line in world.actions(ActionKind.RESTART_REPLICA)] == [ActionState.WOULD]


def test_an_idle_reset_obeys_its_rule(make_world: MakeWorld) -> None:
    world = make_world(IDLE, settings=Settings(shadowed={"remap_pending": "it is new since the policy was adopted"}))
    hit(world, "remap_pending")
    resets = [line for line in world.lines if isinstance(line, ActionLine) and line.of is ActionKind.RESET_GPU]
    assert {line.state for line in resets} == {ActionState.WOULD}


def test_agents_are_told_for_which_codes_they_fence_nothing(make_world: MakeWorld) -> None:
    rules = {"xid:48": Rule(shadow=True), "xid:13": Rule(shadow=True), "xid:119": Rule(level=Level.CORDON)}
    world = make_world(IDLE, settings=replace(NOT_ADOPTED, rules=rules))
    desired = world.core.desired("n1")
    assert desired is not None
    assert desired.shadowed == ("xid:48", "xid:95")
    adopt(world, Settings())
    desired = world.core.desired("n1")
    assert desired is not None
    assert desired.shadowed == ()


def test_adopting_gives_no_new_epoch(make_world: MakeWorld) -> None:
    world = make_world(IDLE, settings=replace(NOT_ADOPTED, epoch=7))
    hit(world, "xid:95")
    adopt(world, Settings())
    assert {action.token.partition(".")[0] for action in world.actions()} == {"7"}


def changed(code: str, **then: object) -> Settings:
    """An upgrade has changed the rule of a code; ``then``: what it was."""
    row = codes.row(code)
    names = [name for name in Pinned.__struct_fields__ if name not in {"table", "weighs"}]
    now = Pinned(**{name: getattr(row, name) for name in names})
    return Settings(kept={code: Kept(then=replace(now, **then), now=now)})


def test_a_rule_that_an_upgrade_made_harsher_goes_on_as_it_was_and_says_what_it_would_do(make_world: MakeWorld) -> None:
    settings = changed("xid:95", severity=Severity.WARNING, recovery=Recovery.INVESTIGATE)
    world = make_world(IDLE, settings=settings)
    hit(world, "xid:95")
    hit(world, "xid:95")
    assert (world.placed(), would(world)) == ([], [])
    [note] = [line for line in world.lines if isinstance(line, NoteLine) and line.code == "changed_rule"]
    assert note.rule == "xid:95"
    assert note.text.startswith("xid:95: as adopted warning, investigate: not held; as changed it would be")
    assert note.text.endswith(": held")
    adopt(world, Settings())
    hit(world, "xid:95", gpu=1)
    assert [hold.subject.gpu for hold in world.placed()] == ["GPU-n1-1"]


def test_a_rule_that_an_upgrade_made_milder_acts_as_it_was_adopted(make_world: MakeWorld) -> None:
    settings = changed("xid:13", severity=Severity.CRITICAL, recovery=Recovery.RESET_GPU, condition=True)
    world = make_world(IDLE, settings=settings)
    hit(world, "xid:13")
    assert [hold.rule for hold in world.placed()] == ["xid:13"]


def test_what_an_upgrade_made_certain_is_fenced_by_no_agent_until_it_is_adopted(make_world: MakeWorld) -> None:
    world = make_world(IDLE, settings=changed("xid:95", certain=not codes.row("xid:95").certain))
    desired = world.core.desired("n1")
    assert desired is not None
    assert ("xid:95" in desired.shadowed) is codes.row("xid:95").certain
