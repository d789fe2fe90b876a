"""A look at the fleet that draws only what has changed shows what a look that draws everything does."""

from hypothesis import HealthCheck, given, settings

from controller.core.fleet.settings import Settings
from tests.sim.node import Node
from tests.sim.test_promises import CHAT, GPUS, LIMITS, NODES, PAIR, happen, plays
from tests.sim.world import World


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plays)
def test_what_is_drawn_when_it_changes_is_what_would_be_drawn_anew(
    moves: list[tuple[tuple[str, tuple[int, int], str], int]],
) -> None:
    world = World([Node(f"n{n + 1}", GPUS) for n in range(NODES)], (CHAT, PAIR), Settings(limits=LIMITS))
    for (what, at, how), seconds in [(("nothing", (0, 0), ""), 12), *moves]:
        if what != "nothing":
            happen(world, what, at, how)
        for _ in range(4):
            world.run(seconds / 4)
            world.core.draw(2)  # a part of it, ahead of who looks; what changes after that is drawn again
            world.run(2)
            drawn = world.core.view()
            world.core._fleet.work.looks |= dict.fromkeys(world.core._fleet.nodes)
            assert drawn == world.core.view()
