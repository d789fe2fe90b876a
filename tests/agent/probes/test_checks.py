"""What an active check reports, only its own pass takes back; how bad it is follows from the code."""

from agent.judge import Judge
from vocab.messages import ClearedItem, EventItem
from vocab.observations import Check, GpuIdentity, NodeSeen

GPU = "GPU-1"


def judge() -> Judge:
    made = Judge("n1")
    made.observe(NodeSeen(at=0, boot_id="b1", gpus=(GpuIdentity(uuid=GPU, index=0, pci="0000:18:00"),)), 0)
    return made


def checked(made: Judge, at: float, check: str, result: str, code: str | None = None, *, fatal: bool = False) -> list:
    return made.observe(Check(at=at, check=check, gpu=GPU, result=result, code=code, fatal=fatal), at)


def test_the_pass_of_another_check_ends_nothing() -> None:
    made = judge()
    [found] = checked(made, 1, "ecc", "problem", "ecc_uncorrectable")
    assert isinstance(found, EventItem)
    assert (found.event.code, found.event.severity.value) == ("ecc_uncorrectable", "critical")
    assert checked(made, 2, "thermal", "pass") == []
    [ended] = checked(made, 3, "ecc", "pass")
    assert isinstance(ended, ClearedItem)
    assert ended.cleared.event == found.event.id


def test_checks_without_a_code_are_told_apart_by_their_names() -> None:
    made = judge()
    [one], [other] = checked(made, 1, "bandwidth", "problem", "X1"), checked(made, 1, "copy", "problem", fatal=True)
    assert [(each.event.code, each.event.device) for each in (one, other)] == [
        ("check_failed", "check:bandwidth"), ("check_failed", "check:copy"),
    ]  # fmt: skip
    assert [each.event.severity.value for each in (one, other)] == ["warning", "error"]
    [ended] = checked(made, 2, "copy", "pass")
    assert ended.cleared.event == other.event.id


def test_a_check_that_does_not_know_says_nothing() -> None:
    made = judge()
    checked(made, 1, "copy", "problem")
    assert checked(made, 2, "copy", "unknown") == []
    assert len(checked(made, 3, "copy", "pass")) == 1
    assert checked(made, 4, "copy", "pass") == []


def test_an_xid_that_a_check_has_read_is_as_bad_as_the_xid() -> None:
    made = judge()
    text = Check(
        at=1, check="memory", gpu=GPU, result="problem", code="DCGM_FR_XID_ERROR", fatal=True,
        text="Detected XID 31 for GPU 0",
    )  # fmt: skip
    items = made.observe(text, 1) + made.tick(20)
    assert {item.event.code for item in items} == {"xid:31"}
    assert {item.event.severity.value for item in items} <= {"info", "warning", "error"}
