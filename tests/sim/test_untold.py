"""What a node should do is asked anew only where it may have changed; nowhere else has it."""

from hypothesis import HealthCheck, given, settings

from controller.core.fleet.settings import Settings
from tests.sim.node import Node
from tests.sim.test_promises import CHAT, GPUS, LIMITS, NODES, PAIR, happen, plays
from tests.sim.world import World
from vocab.messages import Desired


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plays)
def test_a_node_of_which_nothing_was_said_is_to_do_what_it_was_to_do(
    moves: list[tuple[tuple[str, tuple[int, int], str], int]],
) -> None:
    world = World([Node(f"n{n + 1}", GPUS) for n in range(NODES)], (CHAT, PAIR), Settings(limits=LIMITS))
    known: dict[str, Desired | None] = {}
    for (what, at, how), seconds in [(("nothing", (0, 0), ""), 12), *moves]:
        if what != "nothing":
            happen(world, what, at, how)
        for _ in range(seconds // 2):
            world.run(2)
            untold = world.core.untold()
            for node in world.nodes:
                desired = world.core.desired(node)
                assert untold is None or node in untold or desired == known[node]
                known[node] = desired
