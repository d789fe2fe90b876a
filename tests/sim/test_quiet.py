"""What the core leaves out of a turn because nothing has changed there would have decided nothing."""

from hypothesis import HealthCheck, given, settings

from controller.core.core import Core
from controller.core.fleet.settings import Settings
from controller.core.fleet.stimuli import AnyStimulus
from tests.sim.node import Node
from tests.sim.test_promises import CHAT, GPUS, LIMITS, NODES, PAIR, happen, plays
from tests.sim.world import World
from vocab.lines import AnyLine


class RestlessCore(Core):
    """Looks at everything in every turn."""

    def take(self, stimulus: AnyStimulus, now: float) -> list[AnyLine]:
        self._stir()
        return super().take(stimulus, now)

    def tick(self, now: float) -> list[AnyLine]:
        self._stir()
        return super().tick(now)

    def _stir(self) -> None:
        self._fleet.touch_all()
        self._fleet.stirred = True


class RestlessWorld(World):
    """A world with such a core."""

    make_core = RestlessCore


def played(kind: type[World], moves: list[tuple[tuple[str, tuple[int, int], str], int]]) -> list[AnyLine]:
    world = kind([Node(f"n{n + 1}", GPUS) for n in range(NODES)], (CHAT, PAIR), Settings(limits=LIMITS))
    world.run(12)
    for (what, at, how), seconds in moves:
        happen(world, what, at, how)
        world.run(seconds)
    return world.lines


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plays)
def test_looking_only_at_what_has_changed_decides_the_same(
    moves: list[tuple[tuple[str, tuple[int, int], str], int]],
) -> None:
    assert played(World, moves) == played(RestlessWorld, moves)


class ThoroughCore(Core):
    """Lets the rules conclude after every single event."""

    def take(self, stimulus: AnyStimulus, now: float) -> list[AnyLine]:
        self._has_rested_at = None
        return super().take(stimulus, now)


class ThoroughWorld(World):
    """A world with such a core."""

    make_core = ThoroughCore


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plays)
def test_events_on_which_nothing_rests_are_heard_together_and_decide_the_same(
    moves: list[tuple[tuple[str, tuple[int, int], str], int]],
) -> None:
    assert played(World, moves) == played(ThoroughWorld, moves)
