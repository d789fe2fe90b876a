"""Starts: what is missing is ordered where there is room; the others wait, each with its reason, and none twice."""

from controller.core.fleet.settings import Limits, Settings
from controller.core.fleet.stimuli import Deployment
from tests.controller.core.conftest import MakeWorld
from tests.sim.world import World
from vocab.lines import ActionLine
from vocab.states import ActionKind, ActionState

START = ActionKind.START_REPLICA


def loading(world: World) -> int:
    """Starts that were ordered and have not ended."""
    return sum(line.of is START and line.state is not ActionState.WAITING for line in world.core.view().actions)


def waiting(world: World) -> list[ActionLine]:
    return [line for line in world.core.view().actions if line.of is START and line.state is ActionState.WAITING]


def ready(world: World) -> int:
    return sum(replica.state == "ready" for replica in world.core.view().replicas)


def test_a_node_loads_only_so_many_weights_at_one_time(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="idle", replicas=0), settings=Settings(limits=Limits(loads_node=2)))
    world.deployments.append(Deployment(name="chat", replicas=5))
    world._declare()
    assert loading(world) == 2
    assert {line.why for line in waiting(world)} == {"its turn to load its weights"}
    assert {(line.budget.limit, line.budget.of) for line in waiting(world) if line.budget} == {(2, "loads on one node")}
    world.run(60)
    assert (ready(world), waiting(world)) == (5, [])


def test_a_model_is_loaded_only_so_often_at_one_time(make_world: MakeWorld) -> None:
    settings = Settings(limits=Limits(loads_model=1))
    world = make_world(Deployment(name="idle", replicas=0), nodes=2, settings=settings)
    world.deployments += [Deployment(name="chat", replicas=3), Deployment(name="other", replicas=1)]
    world._declare()
    assert loading(world) == 2, "one of each"
    assert {line.budget.of for line in waiting(world) if line.budget} == {"loads of chat"}
    world.run(60)
    assert ready(world) == 4


def test_what_is_not_wanted_any_more_is_called_off(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=4), gpus=2)
    assert len(waiting(world)) == 2
    world.deployments[0] = Deployment(name="chat", replicas=3)
    world._declare()
    assert len(waiting(world)) == 1
    assert [line.why for line in world.actions(START) if line.state is ActionState.CANCELLED] == [
        "it is not needed any more"
    ]


def test_failed_starts_make_the_next_one_wait_for_the_window(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="idle", replicas=0), settings=Settings(limits=Limits(starts=2, window_s=120.0)))
    node = world.nodes["n1"]
    world.deployments.append(Deployment(name="chat"))
    world._declare()
    for _ in range(2):
        world.run(2)
        node.crash(next(iter(node.processes)))
        world.run(2)
    (start,) = waiting(world)
    assert (start.why, start.attempt) == ("its last starts failed", 3)
    assert len(world.ordered(START)) == 2
    world.run(130)
    assert ready(world) == 1


def test_a_replacement_names_the_incident_that_it_is_for(world: World) -> None:
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:79", world.now)
    world.run(4)
    (incident,) = world.opened()
    start = world.ordered(START)[-1]
    assert (start.incident, start.why, start.rule) == (incident.id, "a replacement", "catalogue/xid:79")
