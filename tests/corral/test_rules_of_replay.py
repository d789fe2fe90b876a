"""The rules that the output of a replay rests on, one by one, each by a recording made by hand."""

from pathlib import Path

import pytest

from tests.corral.playing import (
    Json,
    actions,
    codes,
    deployment,
    end,
    final,
    kinds,
    lines_of,
    node,
    of,
    replica,
    sample,
    words,
    xid,
)

REPORTS = [of("report", at) for at in range(0, 60, 2)]


# -- nodes ------------------------------------------------------------------------------------------------


def test_a_node_is_unknown_after_three_usual_gaps_and_fifteen_seconds_at_least(tmp_path: Path) -> None:
    assert words(lines_of(tmp_path, node(), *REPORTS, end(300)), node="n1") == [(0, "live"), (73, "unknown")]
    slow = [of("report", at) for at in range(0, 100, 20)]
    assert words(lines_of(tmp_path, node(), *slow, end(300)), node="n1")[-2:] == [(20, "live"), (140, "unknown")]


def test_a_node_is_lost_when_two_other_observers_say_so_and_comes_back_held(tmp_path: Path) -> None:
    others = [of("reach", 80, None, of="n1", by=by, ok=False) for by in ("gateway", "n2")]
    lines = lines_of(tmp_path, node(), *REPORTS, others[0], end(90))
    assert words(lines, node="n1")[-1] == (73, "unknown")
    back = of("report", 100)
    lines = lines_of(tmp_path, node(), *REPORTS, *others, back, end(110))
    assert words(lines, node="n1")[1:] == [(73, "unknown"), (80, "lost"), (100, "live")]
    (hold,) = kinds(lines, "hold")
    assert (hold["op"], hold["subject"]) == ("placed", {"node": "n1"})
    assert "returned_unexplained" in hold["reason"]


def test_the_replicas_of_a_lost_node_are_placed_elsewhere_and_nothing_is_repaired(tmp_path: Path) -> None:
    others = [of("reach", 80, None, of="n1", by=by, ok=False) for by in ("gateway", "n2")]
    alive = [of("report", at, "n2") for at in range(0, 120, 2)]
    start = [node(), node(name="n2"), deployment(), replica(0)]
    seen = sorted([*REPORTS, *alive, *others], key=lambda line: line["at"])
    lines = lines_of(tmp_path, *start, *seen, end(120))
    begun = [line for line in kinds(lines, "action") if line["state"] == "ordered"]
    assert [(line["at"], line["of"], line["target"]["node"]) for line in begun] == [(80, "start_replica", "n2")]


def test_a_gpu_without_a_reading_for_five_periods_or_a_minute_is_not_fresh(tmp_path: Path) -> None:
    for period, stale in ((5, 61), (20, 101)):
        lines = lines_of(tmp_path, node(gpus=1, period_s=period), sample(1, temperature_c=40), end(300))
        assert words(lines, gpu="GPU-n1-0")[-1] == (stale, "unknown")
    assert final(lines)["in_service"] == 0


# -- boots ------------------------------------------------------------------------------------------------


def test_while_a_node_boots_missing_gpus_are_information_and_then_only_the_missing_one_is_held(tmp_path: Path) -> None:
    start = node(boot_at=0, expected_gpus=4)
    short = node(at=10, listed=(0, 1, 3), boot_at=0, expected_gpus=4)
    lines = lines_of(tmp_path, start, short, end(400))
    early = [line for line in kinds(lines, "event") if line["at"] < 300]
    assert {line["event"]["severity"] for line in early} <= {"info"}
    opened = {line["code"]: line for line in kinds(lines, "condition") if line["state"] == "open"}
    assert opened["gpu_count_mismatch"]["subject"] == {"node": "n1"}
    assert opened["gpu_missing"]["subject"] == {"gpu": "GPU-n1-2"}
    assert opened["gpu_missing"]["at"] == 300
    assert [line["subject"] for line in kinds(lines, "hold")] == [{"gpu": "GPU-n1-2"}]


def test_while_a_node_says_that_it_boots_nothing_harsher_is_said(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, node(), node(at=10, listed=(0, 1), booting=True), end(900))
    assert not kinds(lines, "condition", "hold", "action")


def test_the_hold_of_a_boot_prints_no_line(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, node(), node(at=50, boot="b2", boot_at=45), end(100))
    assert not kinds(lines, "hold")


def test_records_of_a_backlog_keep_their_own_time_and_say_so(tmp_path: Path) -> None:
    late = xid(100, 94, kernel_s=20.0, backlog=True)
    (event,) = kinds(lines_of(tmp_path, node(at=100, boot_at=10), late), "event")
    assert event["at"] == 100
    assert event["event"]["at"] == "1970-01-01T00:00:30.000000Z"
    assert "backlog" in event["event"]["flags"]


# -- sources ----------------------------------------------------------------------------------------------


def test_a_source_that_stays_down_is_an_alert_after_a_minute_and_its_return_ends_it(tmp_path: Path) -> None:
    down = of("source", 10, source="nvml", state="down", error="TIMEOUT")
    up = of("source", 200, source="nvml", state="up")
    lines = lines_of(tmp_path, node(), down, up, end(300))
    seen = [(line["at"], line["code"], line["state"]) for line in kinds(lines, "condition")]
    assert seen == [(70, "monitor_unreachable", "open"), (200, "monitor_unreachable", "cleared")]
    assert not kinds(lines, "hold", "action")
    booted = lines_of(tmp_path, node(boot_at=0), down, end(400))
    assert [line["at"] for line in kinds(booted, "condition")] == [300]


def test_a_source_that_returns_within_a_minute_is_no_alert(tmp_path: Path) -> None:
    down = of("source", 10, source="nvml", state="down")
    assert not kinds(
        lines_of(tmp_path, node(), down, of("source", 69, source="nvml", state="up"), end(300)), "condition"
    )


# -- drains -----------------------------------------------------------------------------------------------

BUSY = {"phase": "draining", "ready": False, "running": 2, "open_requests": 2, "step": 2}


def draining(*more: Json, until: float) -> list[Json]:
    """A fault of the GPU of one of two replicas; prestop 5, drain 30, kill 7 seconds."""
    start = [
        node(),
        deployment(replicas=2, stop={"prestop_s": 5, "drain_s": 30, "kill_s": 7}),
        replica(0, "R1", (0,)),
        replica(0, "R2", (1,)),
        xid(10, 95),
        replica(12, "R3", (2,)),
        replica(13, "R1", (0,), **BUSY),
    ]
    return [*start, *more, end(until)]


def test_a_drain_ends_after_prestop_and_drain_seconds_and_is_followed_by_a_stop(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, *draining(until=60))
    ordered = next(line for line in kinds(lines, "action") if line["of"] == "drain")
    assert (ordered["at"], ordered["state"], ordered["ttl_s"]) == (12, "ordered", 35)
    assert actions(lines, "drain")[-1] == (47, "drain", "timed_out")
    stop = next(line for line in kinds(lines, "action") if line["of"] == "stop_replica")
    assert (stop["at"], stop["state"], stop["ttl_s"]) == (47, "ordered", 7)


@pytest.mark.parametrize("kept", [True, False])
def test_the_time_of_a_drain_goes_on_over_restarts(tmp_path: Path, kept: bool) -> None:
    again = of("restart", 30, None, of="controller", kept=True)
    agent = of("restart", 31, of="agent", kept=kept)
    lines = lines_of(tmp_path, *draining(again, agent, until=60))
    assert actions(lines, "drain")[-1] == (47, "drain", "timed_out")
    assert len([a for a in actions(lines, "drain") if a[2] == "ordered"]) == 1


def test_a_drain_is_done_when_no_request_is_open_and_its_memory_is_freed(tmp_path: Path) -> None:
    held = sample(15, 0, memory_used_bytes=9e9, processes=[{"pid": 7, "used_bytes": 8_000_000_000}])
    empty = replica(20, "R1", (0,), pids=[7], **(BUSY | {"running": 0, "open_requests": 0}))
    freed = sample(24, 0, memory_used_bytes=0, processes=[])
    lines = lines_of(tmp_path, *draining(held, empty, freed, until=30))
    assert actions(lines, "drain")[-1] == (24, "drain", "done")
    gone = replica(22, "R1", (0,), phase="stopped", exit={"code": 0})
    lines = lines_of(tmp_path, *draining(held, empty, gone, until=30))
    assert actions(lines, "drain")[-1] == (22, "drain", "done")


def test_a_drain_is_not_done_while_requests_are_open(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, *draining(until=40))
    assert ("drain", "done") not in {(a[1], a[2]) for a in actions(lines)}


# -- outcomes ---------------------------------------------------------------------------------------------


def reset_done() -> list[Json]:
    """An empty GPU with a fault that was reset."""
    return [node(), xid(5, 95), node(at=20, reset=["GPU-n1-0"])]


def test_a_reset_that_the_inventory_shows_ends_the_order(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, *reset_done(), end(25))
    assert actions(lines) == [(5, "reset_gpu", "ordered"), (20, "reset_gpu", "done"), (20, "validate", "ordered")]


def test_a_validation_ends_by_a_passing_check_of_its_gpu_and_probation_lasts_ten_minutes(tmp_path: Path) -> None:
    other = of("check", 28, check="canary", gpu="GPU-n1-1", result="pass")
    passed = of("check", 30, check="canary", gpu="GPU-n1-0", result="pass")
    lines = lines_of(tmp_path, *reset_done(), other, passed, end(700))
    assert actions(lines, "validate", "release") == [
        (20, "validate", "ordered"), (30, "validate", "done"), (630, "release", "done"),
    ]  # fmt: skip
    assert words(lines, gpu="GPU-n1-0")[-2:] == [(30, "probation"), (630, "healthy")]


def test_a_check_before_the_order_proves_nothing(tmp_path: Path) -> None:
    early = of("check", 15, check="canary", gpu="GPU-n1-0", result="pass")
    start = reset_done()
    lines = lines_of(tmp_path, *start[:2], early, start[2], end(25))
    assert actions(lines, "validate") == [(20, "validate", "ordered")]


def test_a_validation_ends_by_an_action_line_too(tmp_path: Path) -> None:
    passed = of("action", 30, of="validate", gpu="GPU-n1-0", state="done")
    assert (30, "validate", "done") in actions(lines_of(tmp_path, *reset_done(), passed, end(40)))


def test_a_check_that_fails_ends_the_validation_badly(tmp_path: Path) -> None:
    failed = of("check", 30, check="canary", gpu="GPU-n1-0", result="problem", text="sum differs")
    lines = lines_of(tmp_path, *reset_done(), failed, end(40))
    assert (30, "validate", "failed") in actions(lines)
    assert final(lines, gpu="GPU-n1-0")["state"] == "quarantined"


def test_an_action_without_an_order_counts_only_if_somebody_else_did_it(tmp_path: Path) -> None:
    busy = [node(), deployment(), replica(0), xid(5, 95, tail="pid=7, name=x, Uncontained: LTC TAG (0x1,0x0).")]
    ours = of("action", 6, of="reset_gpu", gpu="GPU-n1-0", state="done")
    assert "cleared" not in {line["state"] for line in kinds(lines_of(tmp_path, *busy, ours), "condition")}
    theirs = ours | {"by": "other"}
    assert "cleared" in {line["state"] for line in kinds(lines_of(tmp_path, *busy, theirs), "condition")}


def test_an_order_of_which_nothing_is_heard_times_out(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, node(), xid(5, 95), end(400))
    assert actions(lines, "reset_gpu")[:2] == [(5, "reset_gpu", "ordered"), (305, "reset_gpu", "timed_out")]


def test_a_new_boot_ends_a_reboot(tmp_path: Path) -> None:
    works = of("replica", 1, replica="R1", deployment="chat", gpus=["GPU-n1-1"], phase="ready", ready=True, step=1)
    approve = of("operator", 20, do="approve", node="n1", by="ann", reason="quiet night")
    lines = lines_of(tmp_path, node(), works, xid(5, 79), approve, node(at=300, boot="b2", boot_at=290), end(320))
    assert actions(lines, "reboot_node") == [
        (5, "reboot_node", "waiting"), (20, "reboot_node", "ordered"), (300, "reboot_node", "done"),
    ]  # fmt: skip


def test_an_empty_node_is_rebooted_without_being_asked_for(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, node(), xid(5, 79), node(at=300, boot="b2", boot_at=290), end(320))
    assert actions(lines, "reboot_node") == [(5, "reboot_node", "ordered"), (300, "reboot_node", "done")]


# -- what may not be done now -----------------------------------------------------------------------------


def test_what_a_level_or_a_pause_forbids_is_said_as_would(tmp_path: Path) -> None:
    watch = of("fleet", 0, None, pools={"p": {"nodes": ["n1"], "level": "observe"}})
    paused = of("operator", 1, None, do="pause", by="ann", reason="exam")
    for first in (watch, paused):
        lines = lines_of(tmp_path, first | {"at": 0}, node(), xid(5, 95), end(20))
        assert [line["op"] for line in kinds(lines, "hold")] == ["would_place"]
        assert {line["state"] for line in kinds(lines, "action")} == {"would"}


def test_what_waits_for_a_person_or_a_budget_says_so(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, node(gpus=8), xid(5, 95), xid(6, 95, 1), xid(7, 95, 2), end(20))
    waiting = [line for line in kinds(lines, "action") if line["state"] == "waiting"]
    assert [(line["at"], line["of"]) for line in waiting] == [(7, "reset_gpu")]
    assert waiting[0]["budget"]["limit"] == 2


# -- uplinks and clocks -----------------------------------------------------------------------------------


def test_behind_a_dead_uplink_lines_tell_when_they_were_taken_and_the_fault_when_it_was(tmp_path: Path) -> None:
    lines = lines_of(
        tmp_path, node(), of("uplink", 10, state="down"), xid(20, 95), of("uplink", 50, state="up"), end(60)
    )
    event, condition = kinds(lines, "event")[0], kinds(lines, "condition")[0]
    assert (event["at"], condition["at"], condition["since"]) == (50, 50, 20)
    assert event["event"]["first_at"] == "1970-01-01T00:00:20.000000Z"


def test_a_lossy_uplink_doubles_nothing(tmp_path: Path) -> None:
    lines = lines_of(
        tmp_path, node(), of("uplink", 10, state="lossy"), xid(20, 95), of("uplink", 50, state="up"), end(60)
    )
    plain = lines_of(tmp_path, node(), xid(20, 95), end(60))
    assert lines == plain


def test_reports_that_the_uplink_does_not_carry_do_not_count(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, node(), *REPORTS[:5], of("uplink", 9, state="down"), *REPORTS[5:], end(60))
    assert words(lines, node="n1")[-1] == (23, "unknown")


def test_a_jump_of_the_nodes_clock_moves_no_deadline(tmp_path: Path) -> None:
    down = of("source", 10, source="nvml", state="down")
    for step in (-120, 3600):
        lines = lines_of(tmp_path, node(), down, of("clock", 20, step_s=step), end(200))
        assert [line["at"] for line in kinds(lines, "condition")] == [70]


@pytest.mark.parametrize("told_at", [20, 320])
def test_while_a_node_is_frozen_no_time_passes_for_its_judge(tmp_path: Path, told_at: float) -> None:
    """The pause is told when it began, or when its end was noticed; the call has hung for 15 s before and after."""
    hung = of("call", 10, gpu="GPU-n1-0", call="nvmlDeviceGetTemperature", state="started")
    back = of("call", 322, gpu="GPU-n1-0", call="nvmlDeviceGetTemperature", state="returned")
    lines = lines_of(tmp_path, node(), hung, of("clock", told_at, pause_s=300), back, end(400))
    assert "probe_hung" not in codes(lines)


def test_deadlines_at_the_end_line_fire(tmp_path: Path) -> None:
    down = of("source", 10, source="nvml", state="down")
    assert kinds(lines_of(tmp_path, node(), down, end(70)), "condition")
    assert not kinds(lines_of(tmp_path, node(), down, end(69)), "condition")
