"""Replicas that were found: they hold their GPUs, wait for their owner, and are never told anything."""

import msgspec
import pytest

from controller.core.fleet.stimuli import Declared, Deployment, Replicas, Stimulus
from controller.core.replicas.restart import UNWITNESSED_S
from tests.sim.node import Node
from tests.sim.world import World
from vocab.messages import ReplicaStatus
from vocab.observations import Member, Owner
from vocab.states import ActionKind

UNIT = Owner(kind="systemd-unit", name="vllm.service", uid=1000)
NAME = "vllm.service:8000@n1"


class Shared(Node):
    """A node on which somebody else's engine runs as well."""

    found: tuple[ReplicaStatus, ...] = ()

    def report(self, now: float) -> list[Stimulus]:
        """The batch of a node, with what it found."""
        told = super().report(now)
        return [
            Replicas(node=one.node, statuses=(*one.statuses, *self.found)) if isinstance(one, Replicas) else one
            for one in told
        ]

    def serve(self, *gpus: int, deployment: str = "llama", **changes: object) -> None:
        """An engine of a unit on these GPUs; none: it has ended."""
        members = tuple(Member(node=self.name, gpu=self.gpus[gpu], rank=rank) for rank, gpu in enumerate(gpus))
        status = ReplicaStatus(
            replica=NAME, deployment=deployment, members=members, phase="ready", ready=True, admitting=True,
            observed=True, owner=UNIT, engine="vllm", model=deployment, url="http://127.0.0.1:8000",
        )  # fmt: skip
        self.found = (msgspec.structs.replace(status, **changes),) if gpus else ()


@pytest.fixture
def node() -> Shared:
    return Shared("n1", 4)


@pytest.fixture
def world(node: Shared) -> World:
    node.serve(0, 1)
    world = World([node], [Deployment(name="chat", replicas=1, min_ready=1)])
    world.run(12)
    return world


def shown(world: World) -> dict[str, str]:
    return {each.replica: each.state for each in world.core.view().replicas if each.observed}


def test_it_is_shown_with_its_owner_and_keeps_its_gpus(world: World, node: Shared) -> None:
    (seen,) = [each for each in world.core.view().replicas if each.observed]
    assert (seen.replica, seen.state, seen.owner) == (NAME, "ready", "systemd-unit vllm.service, uid 1000")
    assert (seen.engine, seen.model, seen.gpus) == ("vllm", "llama", node.gpus[:2])
    others = [each for each in world.core.view().replicas if not each.observed]
    assert not {gpu for each in others for gpu in each.gpus} & set(node.gpus[:2])


def test_its_node_is_never_told_to_run_or_end_it(world: World, node: Shared) -> None:
    node.hit(node.gpus[0], "xid:79", world.now)
    world.run(60)
    desired = world.core.desired("n1")
    assert desired is not None
    assert NAME not in {spec.replica for spec in desired.replicas}
    drains = [a for a in world.actions(ActionKind.DRAIN) if a.subject.replica == NAME]
    assert [(a.state, a.why) for a in drains] == [
        ("waiting", "it was not started by us: its owner (systemd-unit vllm.service, uid 1000) must drain it")
    ]


def test_one_that_stalls_waits_for_its_owner_to_restart_it(world: World, node: Shared) -> None:
    node.complain(NAME, "replica_stalled", world.now, still_since=world.now)
    world.run(UNWITNESSED_S + 4)
    restarts = [a for a in world.actions(ActionKind.RESTART_REPLICA) if a.subject.replica == NAME]
    assert {(a.state, a.why) for a in restarts} == {
        ("waiting", "it was not started by us: its owner (systemd-unit vllm.service, uid 1000) must restart it")
    }


def test_a_node_that_lists_it_no_more_is_not_told_to_start_it(world: World, node: Shared) -> None:
    node.serve()
    world.run(4)
    desired = world.core.desired("n1")
    assert desired is not None
    assert NAME not in {spec.replica for spec in desired.replicas}
    assert shown(world) == {}


def test_its_end_frees_its_gpus_and_ends_what_waited_for_its_owner(world: World, node: Shared) -> None:
    node.hit(node.gpus[0], "xid:79", world.now)
    world.run(10)
    node.serve()
    world.run(10)
    assert shown(world) == {}
    drains = [a for a in world.actions(ActionKind.DRAIN) if a.subject.replica == NAME]
    assert [(a.state, a.why) for a in drains][1:] == [("expired", "its owner has ended it")]


def test_started_again_by_its_owner_it_is_the_same_replica(world: World, node: Shared) -> None:
    node.serve()
    world.run(4)
    node.serve(0, 1, pid=77)
    world.run(4)
    assert shown(world) == {NAME: "ready"}


def test_one_that_loads_on_one_gpu_after_the_other_has_all_in_the_end(world: World, node: Shared) -> None:
    node.serve()
    world.run(4)
    node.serve(1, phase="starting", ready=False)
    world.run(4)
    node.serve(0, 1)
    world.run(4)
    (seen,) = [each for each in world.core.view().replicas if each.observed]
    assert (seen.gpus, seen.state) == (node.gpus[:2], "ready")


def test_a_controller_that_restarts_still_knows_that_it_is_not_ours(world: World, node: Shared) -> None:
    node.serve()  # and by the time the controller is back, it has gone
    world.restart()
    world.run(10)
    desired = world.core.desired("n1")
    assert desired is not None
    assert NAME not in {spec.replica for spec in desired.replicas}
    node.serve(0, 1)
    world.run(4)
    assert shown(world) == {NAME: "ready"}


def test_it_counts_for_a_deployment_that_its_owner_manages_and_for_none_of_ours(world: World, node: Shared) -> None:
    node.serve(0, 1, deployment="chat")
    world.run(20)
    (chat,) = world.core.view().deployments
    assert (chat.wanted, chat.replicas, chat.ready) == (1, 1, 1)  # our own
    assert not [a for a in world.actions(ActionKind.DRAIN) if a.subject.replica == NAME]
    world.tell(Declared(deployment=Deployment(name="chat", replicas=1, min_ready=1, managed_by="systemd-unit")))
    world.run(4)
    (chat,) = world.core.view().deployments
    assert chat.ready == 2


def test_an_engine_is_started_with_the_options_of_its_deployment(node: Shared) -> None:
    options = {"max_model_len": 4096}
    world = World([node], [Deployment(name="llama", model="/m/llama", engine="vllm", options=options)])
    world.run(4)
    desired = world.core.desired("n1")
    assert desired is not None
    assert [(spec.engine, spec.model, spec.options) for spec in desired.replicas] == [("vllm", "/m/llama", options)]


def train(node: Shared, *gpus: int) -> None:
    """A training on these GPUs; none: it has ended."""
    unit = Owner(kind="slurm", name="job-42", uid=1000)
    node.serve(*gpus, deployment="", replica=WORK, owner=unit, engine="", url="", serves=False)


WORK = "job-42@n1"


def test_others_work_is_shown_with_its_owner_and_takes_its_gpus_from_placement(node: Shared) -> None:
    train(node, 0, 1, 2, 3)
    world = World([node], [Deployment(name="chat", replicas=1, min_ready=1)])
    world.run(12)
    view = world.core.view()
    (work,) = [each for each in view.replicas if each.observed]
    assert (work.replica, work.serves, work.owner) == (WORK, False, "slurm job-42, uid 1000")
    assert view.nodes[0].gpus[0].used_by == ("slurm job-42, uid 1000",)
    assert view.counts["free"] == 0
    assert view.deployments[0].ready == 0
    assert view.deployments[0].short_because == "1 to start: no GPU is free: 4 occupied"
    assert not view.holds
    train(node)
    world.run(12)
    assert world.core.view().deployments[0].ready == 1


def test_a_repair_waits_for_the_owner_of_work_that_it_would_end(node: Shared) -> None:
    train(node, 0)
    world = World([node])
    world.run(12)
    node.hit(node.gpus[0], "xid:119", world.now)
    world.run(60)
    (drain,) = [a for a in world.actions(ActionKind.DRAIN) if a.subject.replica == WORK]
    assert (drain.state, "slurm job-42, uid 1000" in drain.why) == ("waiting", True)
    assert not [a for a in world.actions(ActionKind.RESET_GPU) if a.state == "ordered"]
    train(node)
    world.run(60)
    assert [a for a in world.actions(ActionKind.RESET_GPU) if a.state != "waiting"]


def test_a_boot_for_another_gpu_lists_the_work_that_it_would_end(node: Shared) -> None:
    train(node, 3)
    world = World([node])
    world.run(12)
    node.hit(node.gpus[0], "xid:79", world.now)
    world.run(60)
    boots = [a for a in world.actions(ActionKind.REBOOT_NODE) if a.state == "waiting"]
    assert boots
    assert WORK in {subject.replica for subject in boots[-1].disrupts}
    assert not [a for a in world.actions(ActionKind.REBOOT_NODE) if a.state == "ordered"]
