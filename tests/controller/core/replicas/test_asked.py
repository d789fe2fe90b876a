"""A person's drain that waits says what for, and anew when that changes: `corral status` shows it."""

from controller.core.fleet.stimuli import Deployment
from tests.controller.core.conftest import MakeWorld
from tests.sim.world import World
from vocab.states import ActionKind, ActionState

FULL = Deployment(name="chat", replicas=2, min_ready=2)


def waits(world: World) -> list[str]:
    """What each line of a drain that waits says, in order."""
    return [line.why for line in world.actions(ActionKind.DRAIN) if line.state is ActionState.WAITING]


def test_a_drain_that_cannot_be_spared_says_so_once(make_world: MakeWorld) -> None:
    world = make_world(FULL, gpus=2)
    world.ask("drain", gpu="GPU-n1-0", reason="fans")
    world.run(120)
    assert waits(world) == [
        "asked for by ada: fans",
        "no GPU is free for a replacement; without it too few would serve",
    ]
    (action,) = [action for action in world.core.view().actions if action.of is ActionKind.DRAIN]
    assert action.budget is not None
    assert (action.budget.used, action.budget.limit) == (1, 2)


def test_a_drain_that_waited_says_when_its_replacement_comes_after_all(make_world: MakeWorld) -> None:
    world = make_world(FULL, gpus=3)
    free = next(gpu for gpu in world.nodes["n1"].gpus if world.replica_on(gpu) is None)
    world.ask("hold", gpu=free, reason="a look")
    world.ask("drain", gpu=next(gpu for gpu in world.nodes["n1"].gpus if gpu != free), reason="fans")
    world.run(20)
    world.ask("lift", gpu=free, reason="looked at")
    world.run(60)
    assert waits(world)[1:] == [
        "no GPU is free for a replacement; without it too few would serve",
        "its replacement is starting",
    ]
    assert [line.why for line in world.ordered(ActionKind.DRAIN)] == ["its replacement is ready"]


def test_what_it_waits_for_outlives_a_restart_and_is_not_said_again(make_world: MakeWorld) -> None:
    world = make_world(FULL, gpus=2)
    world.ask("drain", gpu="GPU-n1-0", reason="fans")
    world.run(20)
    said = waits(world)
    world.restart()
    world.run(60)
    assert waits(world) == said
