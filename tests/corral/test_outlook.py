"""What comes next on a GPU, and by which command a person allows it."""

from typing import Any

import pytest

from corral.leave import allowed_by
from corral.outlook import outlook
from vocab.lines import ActionLine, Subject
from vocab.states import ActionKind, ActionState

GPU = "GPU-1"
NOON = 1_798_718_400.0  # 2026-12-31 12:00:00Z


def replica(name: str, gpu: str, state: str = "ready") -> dict[str, Any]:
    return {
        "replica": name, "deployment": "chat", "state": state, "node": "n1", "gpus": [gpu], "ready": state == "ready"
    }  # fmt: skip


def fleet(**more: Any) -> dict[str, Any]:
    gpu = {"uuid": GPU, "index": 0, "state": "lost", "phase": "in_service", "holds": [], "incidents": []}
    nodes = [{"node": "n1", "gpus": [gpu | more.pop("gpu", {})]}]
    deployments = [{"name": "chat", "min_ready": 1}]
    return {"nodes": nodes, "deployments": deployments, "incidents_open": [], "actions_waiting": [], **more}


def boot(**more: Any) -> dict[str, Any]:
    return {"id": "a1", "of": "reboot_node", "subject": {"node": "n1"}, "why": "it takes more than its fault", **more}


def line(of: ActionKind, state: ActionState, **more: Any) -> ActionLine:
    return ActionLine(
        at=NOON, of=of, state=state, id="a1", subject=Subject(gpu=GPU), token="1.1", rule="xid:79", policy="", why="x",
        **more,
    )  # fmt: skip


def test_an_approval_that_would_leave_too_few_takes_force_and_says_why() -> None:
    serving = [replica("chat-1", "GPU-2"), replica("chat-2", "GPU-3")]
    told = allowed_by(boot(), fleet(replicas=serving))
    assert told == ("corral approve a1 --force (without it refused: it would leave 0 of 1 replicas of chat that serve)")


def test_an_approval_that_can_be_spared_takes_none() -> None:
    elsewhere = replica("chat-2", "GPU-9") | {"node": "n2"}
    assert allowed_by(boot(), fleet(replicas=[replica("chat-1", "GPU-2"), elsewhere])) == "corral approve a1"
    assert allowed_by(boot(), fleet(replicas=[replica("chat-1", "GPU-2", "failed")])) == "corral approve a1"


@pytest.mark.parametrize(
    "action",
    [boot(of="drain"), boot(why="no means: a person must do it"), boot(budget={"used": 2, "limit": 2, "of": "x"})],
)
def test_where_no_approval_helps_none_is_offered(action: dict[str, Any]) -> None:
    assert allowed_by(action, fleet()) is None


def test_what_waits_is_told_with_the_command_that_allows_it() -> None:
    hold = {"id": "h1", "owner": "policy", "reason": "xid:79", "clears_on": "reboot"}
    about = fleet(actions_waiting=[boot()], gpu={"holds": [hold]})
    assert list(outlook(about, GPU, [line(ActionKind.REBOOT_NODE, ActionState.WAITING)], 600.0)) == [
        "Now: GPU n1/0 is lost.",
        "Waits: reboot_node a1: it takes more than its fault",
        "    allow it with: corral approve a1",
        "Held: h1 by policy: xid:79; its cause ends with a boot of the node",
    ]


def test_a_probation_and_what_is_under_way_are_told_with_their_ends() -> None:
    about = fleet(gpu={"state": "probation", "phase": "probation"})
    (first, *_) = outlook(about, GPU, [line(ActionKind.VALIDATE, ActionState.DONE)], 600.0)
    assert first == "Now: GPU n1/0 is in probation until 12:10:00Z; then it takes work again, if nothing new is seen."
    (_, second) = outlook(fleet(), GPU, [line(ActionKind.RESET_GPU, ActionState.RUNNING, ttl_s=60.0)], 600.0)
    assert second == "Under way: reset_gpu a1 (running 12:00:00Z, 12:01:00Z at the latest): x"


def test_an_incident_that_is_left_to_a_person_says_so_and_a_sound_gpu_that_nothing_comes() -> None:
    incident = {"id": "i1", "code": "xid:79", "severity": "critical"}
    about = fleet(gpu={"incidents": ["i1"]}, incidents_open=[incident], halted={"i1": "it has no means"})
    assert list(outlook(about, GPU, [], 600.0))[1:] == [
        "Open: incident i1, xid:79 critical: goes no further by itself: it has no means"
    ]
    assert list(outlook(fleet(), GPU, [], 600.0))[1:] == ["Nothing of it is open: nothing comes next."]
