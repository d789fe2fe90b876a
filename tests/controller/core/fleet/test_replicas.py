"""What a replica's status says of it: ready, stepping, absent; and what floors make of one that stands still."""

import pytest

from controller.core.fleet.replicas import Replica
from controller.core.fleet.stimuli import Deployment
from tests.controller.core.conftest import MakeWorld
from vocab.messages import ReplicaStatus
from vocab.states import ActionKind, ActionState

READY = {"phase": "ready", "ready": True, "admitting": True}


def replica(**status: object) -> Replica:
    return Replica("r1", "chat", "n1", ("GPU-0",), status=ReplicaStatus(replica="r1", deployment="chat", **status))


@pytest.mark.parametrize(
    ("status", "is_ready", "is_stepping", "is_absent"),
    [
        (READY, True, True, False),
        ({**READY, "stepping": False}, False, False, False),  # it stands still with work: an idle one steps
        ({**READY, "admitting": False}, False, True, False),  # fenced: a panic would fall back on it
        ({"phase": "draining", "ready": True}, False, True, False),
        ({"phase": "starting"}, False, False, False),
        ({"phase": "starting", "attempt": 0, "stepping": False}, False, False, True),
        ({"phase": "stopped", "stepping": False}, False, False, False),
    ],
)
def test_the_words_of_a_status(status: dict[str, object], is_ready: bool, is_stepping: bool, is_absent: bool) -> None:
    made = replica(**status)
    assert (made.is_ready, made.is_stepping, made.is_absent) == (is_ready, is_stepping, is_absent)


def test_a_replica_that_its_agent_does_not_list_is_absent_and_not_ready() -> None:
    made = Replica("r1", "chat", "n1", ("GPU-0",))
    assert made.is_absent
    assert not made.is_ready


def test_one_that_stands_still_does_not_hold_a_floor_up(make_world: MakeWorld) -> None:
    world = make_world(Deployment(name="chat", replicas=2, min_ready=1), gpus=2)
    node = world.nodes["n1"]
    stuck, other = (world.replica_on(gpu) for gpu in node.gpus)
    node.stalled.add(stuck or "")
    world.run(2)
    (chat,) = world.core.view().deployments
    assert chat.ready == 1
    node.hit(node.gpus[1], "xid:95", world.now)
    world.run(30)
    drains = [line for line in world.actions(ActionKind.DRAIN) if line.subject.replica == other]
    assert [line.state for line in drains] == [ActionState.WAITING], "without it nobody would serve"
    node.stalled.clear()
    world.run(30)
    assert world.actions(ActionKind.DRAIN)[-1].state is ActionState.DONE
