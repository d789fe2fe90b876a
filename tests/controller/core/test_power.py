"""The last rung of our own: the power of a node, in our hands only where that is configured."""

import pytest

from controller.core.fleet.settings import Rule, Settings
from controller.core.fleet.stimuli import Arrived, Deployment, Shaped
from tests.sim.node import Node
from tests.sim.world import World
from vocab.events import Recovery
from vocab.lines import ActionLine, NoteLine
from vocab.messages import ActionItem
from vocab.states import ActionKind, ActionState

POWER, REBOOT = ActionKind.POWER_CYCLE, ActionKind.REBOOT_NODE
IDLE = Deployment(name="idle", replicas=0)
BY_POWER = Settings(rules={"xid:79": Rule(recovery=Recovery.POWER_CYCLE)})
SHAPE = Shaped(powered=("n1",))


def made(settings: Settings = BY_POWER, *, powered: bool = True) -> World:
    world = World([Node("n1", 2)], (IDLE,), settings)
    if powered:
        world.tell(SHAPE)
    world.run(6)
    return world


class Hand:
    """The controller's hand in virtual time: it begins what is ordered, once, and the power goes."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cycled: list[str] = []
        self.node = world.nodes["n1"]

    def look(self) -> None:
        for action in self.world.core.view().actions:
            if (action.of, action.state) == (POWER, ActionState.ORDERED) and self.say(action, ActionState.RUNNING):
                self.cycled.append(action.id)
                self.node.silent = False
                self.node.reboot(self.world.now)

    def say(self, action: ActionLine, state: ActionState) -> bool:
        item = ActionItem(at=self.world.now, node="n1", id=action.id, of=POWER, token=action.token, state=state)
        return bool(self.world.tell(Arrived(node="n1", item=item)))


def needs_person(world: World) -> list[str]:
    return [line.text for line in world.lines if isinstance(line, NoteLine) and line.code == "needs_person"]


def test_power_that_is_not_in_our_hands_waits_for_a_person() -> None:
    world = made(powered=False)
    world.nodes["n1"].hit(world.nodes["n1"].gpus[0], "xid:79", world.now)
    world.run(10)
    (waiting,) = world.actions(POWER)
    assert (waiting.state, "a person must do it" in waiting.why) == (ActionState.WAITING, True)
    (line,) = world.ask("approve", action=waiting.id)
    assert isinstance(line, NoteLine)


def test_a_power_cycle_is_ordered_once_nothing_else_is_on_the_node_and_a_new_boot_ends_it() -> None:
    world = made()
    hand = Hand(world)
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:79", world.now)
    for _ in range(10):
        world.run(2)
        hand.look()
    assert len(hand.cycled) == 1
    assert [line.state for line in world.actions(POWER)] == [ActionState.ORDERED, ActionState.RUNNING, ActionState.DONE]


def test_a_node_that_its_power_has_not_brought_back_in_twenty_minutes_is_for_a_person() -> None:
    world = made()
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:79", world.now)
    world.run(4)
    (order,) = world.ordered(POWER)
    Hand(world).say(order, ActionState.RUNNING)
    node.silent = True
    world.run(1300)
    assert [line.state for line in world.actions(POWER)][-1] is ActionState.TIMED_OUT
    assert len(world.ordered(POWER)) == 1
    assert "its node is not back" in needs_person(world)[-1]


def test_a_node_that_a_reboot_has_left_silent_is_not_told_to_reboot_again_but_its_power_is_next() -> None:
    world = made(Settings())
    node = world.nodes["n1"]
    node.obeys, node.busy = True, True
    node.hit(node.gpus[0], "xid:79", world.now)
    world.run(4)
    assert len(world.ordered(REBOOT)) == 1
    node.silent = True
    world.run(1300)
    assert len(world.ordered(REBOOT)) == 1
    assert [line.state for line in world.actions(POWER)] == [ActionState.WAITING]
    waiting = world.actions(POWER)[0]
    assert "a person must approve it" in waiting.why  # nobody knows what runs on a node that is silent
    hand = Hand(world)
    world.ask("approve", action=waiting.id)
    hand.look()
    world.run(20)
    assert len(hand.cycled) == 1
    assert [line.state for line in world.actions(POWER)][-1] is ActionState.DONE


def test_a_person_calls_it_off_before_it_has_begun() -> None:
    world = made()
    hand = Hand(world)
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:79", world.now)
    world.run(4)
    (order,) = world.ordered(POWER)
    world.ask("cancel", action=order.id)
    hand.look()
    world.run(60)
    hand.look()
    assert hand.cycled == []
    assert not hand.say(order, ActionState.RUNNING)  # one that asks too late is told no


def test_two_faults_that_one_power_cycle_ends_get_one() -> None:
    world = made()
    hand = Hand(world)
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:79", world.now)
    node.hit(node.gpus[1], "xid:79", world.now)
    for _ in range(20):
        world.run(2)
        hand.look()
    assert len(hand.cycled) == 1
    assert ActionState.COVERED in {line.state for line in world.actions(POWER)}


def test_an_undo_calls_off_one_that_has_not_begun_and_names_one_that_has() -> None:
    world = made()
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:79", world.now)
    world.run(4)
    (order,) = world.ordered(POWER)
    Hand(world).say(order, ActionState.RUNNING)
    lines = world.ask("undo", since_s=600.0)  # type: ignore[arg-type]
    assert any(isinstance(line, NoteLine) and "power_cycle has begun" in line.text for line in lines)
    assert [hold.owner for hold in world.core.view().holds] == ["policy"]


@pytest.mark.parametrize("after", range(1, 40, 2))
def test_power_goes_once_however_the_controller_is_killed(after: int) -> None:
    """Killed at any line: what was stored is known again, and the hand begins only what is stored as begun."""
    world = made()
    hand = Hand(world)
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:79", world.now)
    world.crash_at = len(world.lines) + after
    for _ in range(30):
        world.run(2)
        if world.core.view().nodes:
            world.tell(SHAPE)  # as at every start
        try:
            hand.look()
        except Exception:  # noqa: BLE001 - the transaction was cut: nothing was sent
            keep, world.crash_at = world.crash_at, None
            world.restart(keep)
            world.tell(SHAPE)
    assert len(hand.cycled) == 1
    assert [line.state for line in world.actions(POWER)][-1] is ActionState.DONE
