"""A core that lets go of the events on which nothing rests decides as one that keeps everything."""

from hypothesis import HealthCheck, given, settings

from controller.core.core import Core
from controller.core.fleet.ledger import LOOSE_S
from controller.core.fleet.settings import Settings
from controller.core.fleet.stimuli import AnyStimulus
from tests.sim.node import Node
from tests.sim.test_promises import CHAT, GPUS, LIMITS, NODES, PAIR, happen, plays
from tests.sim.world import World
from vocab.lines import AnyLine

SOON_S = 10.0


class ForgetfulCore(Core):
    """Lets go of events after seconds."""

    def take(self, stimulus: AnyStimulus, now: float) -> list[AnyLine]:
        self._fleet.ledger.forget(now + LOOSE_S - SOON_S)
        return super().take(stimulus, now)


class ForgetfulWorld(World):
    """A world with such a core."""

    make_core = ForgetfulCore


def played(kind: type[World], moves: list[tuple[tuple[str, tuple[int, int], str], int]]) -> World:
    world = kind([Node(f"n{n + 1}", GPUS) for n in range(NODES)], (CHAT, PAIR), Settings(limits=LIMITS))
    world.run(12)
    for (what, at, how), seconds in moves:
        happen(world, what, at, how)
        world.run(seconds)
    return world


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plays)
def test_forgetting_what_nothing_rests_on_decides_the_same(
    moves: list[tuple[tuple[str, tuple[int, int], str], int]],
) -> None:
    assert played(World, moves).lines == played(ForgetfulWorld, moves).lines


def test_events_that_led_to_nothing_are_gone_after_an_hour() -> None:
    world = played(World, [(("hit", (1, 0), "xid:13"), 6), (("hit", (1, 1), "xid:79"), 6)])
    assert {event.code for event in world.core._fleet.ledger.events.values()} == {"xid:13", "xid:79"}
    world.run(LOOSE_S + 60, every_s=600)
    kept = world.core._fleet.ledger
    assert "xid:13" not in {event.code for event in kept.events.values()}
    assert "xid:79" in {event.code for event in kept.events.values()}
    assert kept.events.keys() == kept.taken_at.keys() == kept.first_taken_at.keys()
