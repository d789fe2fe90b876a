"""A change of shift: open incidents by what comes next, what needs a person first, and what has changed since."""

from typing import Any

from corral.handover import handover, text

NOW = 1_796_000_000.0
SINCE = NOW - 12 * 3600


def incident(name: str, at: float = NOW, **more: Any) -> dict[str, Any]:
    usual = {"code": "xid:79", "severity": "critical", "subject": {"gpu": "GPU-1"}, "recovery": "reboot_node"}
    return {"id": name, "at": at, **usual, **more}


FLEET: dict[str, Any] = {
    "nodes": [
        {
            "node": "n1",
            "state": "live",
            "holds": [{"reason": "maintenance until 17:30: fans", "until": NOW}],
            "gpus": [{"uuid": "GPU-1", "index": 3}],
        },
        {"node": "n2", "state": "lost", "holds": []},
    ],
    "deployments": [{"name": "chat", "ready": 1, "wanted": 2, "short_because": "no free GPU"}],
    "incidents_open": [incident("i-watch"), incident("i-halted"), incident("i-approve")],
    "halted": {"i-halted": "three attempts failed"},
    "actions_waiting": [{"id": "a1", "of": "reboot_node", "incident": "i-approve", "why": "wider than its fault"}],
    "counts": {"total": 16, "in_service": 14, "free": 3},
}
CLOSED = [incident("i-new", closed_because="released"), incident("i-old", at=SINCE - 1)]
ACTIONS = [{"of": "reset_gpu", "state": "done", "at": NOW}, {"of": "drain", "state": "would", "at": NOW}]
AUDIT = [
    {"at": NOW, "actor": "ada", "act": "hold", "subject": "node:n1", "reason": "fans", "outcome": "hold h1 placed"},
    {"at": NOW, "actor": "bo", "act": "approve", "subject": "action:a1", "reason": "", "outcome": "refused: paused"},
    {"at": NOW, "actor": "ada", "act": "lift", "subject": "hold:h1", "outcome": "hold h1 lifted on gpu:GPU-1"},
    {"at": NOW, "actor": "ada", "act": "drain", "subject": "gpu:GPU-1", "reason": "", "outcome": ""},
]
EVENTS = [{"code": "xid:79", "severity": "critical", "injected": False}] * 2


def made(**more: Any) -> Any:
    return handover(SINCE, FLEET | more, CLOSED, ACTIONS, AUDIT, EVENTS)


def test_what_needs_a_person_comes_first_with_its_command() -> None:
    steps = list(made().next)
    assert steps[0] == "a person: three attempts failed"
    assert steps[1] == "approve its reboot_node: corral approve a1"
    assert steps[2].startswith("nothing to do")


def test_an_approval_that_takes_force_says_so() -> None:
    replica = {"replica": "chat-1", "deployment": "chat", "state": "ready", "ready": True, "node": "n1", "gpus": []}
    chat = {"name": "chat", "ready": 1, "wanted": 1, "min_ready": 1}
    boot = FLEET["actions_waiting"][0] | {"subject": {"node": "n1"}}
    found = made(replicas=[replica], deployments=[chat], actions_waiting=[boot])
    assert any("corral approve a1 --force (" in step for step in found.next)


def test_what_only_a_person_can_look_into_is_said_with_its_runbook_and_place() -> None:
    found = made(incidents_open=[incident("i-link", code="pcie_width", severity="error", recovery="investigate")]).next
    assert found == {"a person looks into it: corral runbook CorralPcie": ("i-link pcie_width error on n1/3",)}


def test_only_what_changed_since_is_told() -> None:
    found = made()
    assert [line.split()[0] for line in found.closed] == ["i-new"]
    assert found.done == ("1 × reset_gpu done",)
    assert found.seen == ("2 × xid:79",)
    assert found.ordered[0].endswith("ada: hold node:n1 (fans)")


def test_an_order_that_was_refused_is_no_order_that_was_done() -> None:
    assert made().ordered[1].endswith("bo: approve action:a1: refused: paused")


def test_an_order_about_a_gpu_or_a_hold_on_one_names_it_as_people_do() -> None:
    assert [line.split(": ", 1)[1] for line in made().ordered[2:]] == ["lift hold:h1 on n1/3", "drain n1/3"]


def test_what_stands_is_told_with_maintenance_and_what_is_short() -> None:
    standing = " / ".join(made().standing)
    for words in ("14 of 16 GPUs", "n1: maintenance until", "n2 is lost", "chat: 1 of 2 ready: no free GPU"):
        assert words in standing


def test_no_line_is_wider_than_asked() -> None:
    wide = incident("i-" + "x" * 30, code="a_long_code " * 12)
    assert max(map(len, text(made(incidents_open=[wide]), 60))) <= 60
