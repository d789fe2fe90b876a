"""Each kind of observation has its meaning, with the names that a recording uses for GPUs and nodes."""

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
    told,
    words,
    xid,
)

FAILED = {"remap_failed": 1}


@pytest.mark.parametrize(
    "name", [{"gpu": "GPU-n1-2"}, {"index": 2}, {"pci": "0000:12:00"}, {"pci": "00000000:12:00.0"}]
)
def test_a_gpu_is_named_by_uuid_index_or_address(tmp_path: Path, name: Json) -> None:
    seen = [of("gpu", at, readings=FAILED, **name) for at in range(1, 40, 10)]
    lines = lines_of(tmp_path, node(), *seen, end(50))
    assert kinds(lines, "condition")[0]["subject"] == {"gpu": "GPU-n1-2"}


def test_a_line_that_comes_before_its_inventory_does_no_harm(tmp_path: Path) -> None:
    early = [xid(0, 79), sample(0, 0, temperature_c=40), replica(0), of("source", 0, source="nvml", state="up")]
    lines = lines_of(tmp_path, *early, node(at=1), end(5))
    (event,) = kinds(lines, "event")
    assert event["event"]["gpu"] is None
    assert event["event"]["pci"] == "0000:10:00"
    assert "lookup_failed" in event["event"]["flags"]
    assert not kinds(lines, "hold", "action")


def test_a_line_without_a_node_is_of_the_node_whose_gpu_it_names(tmp_path: Path) -> None:
    nodes = [node(), node(name="n2")]
    seen = [of("gpu", at, None, gpu="GPU-n2-1", readings=FAILED) for at in range(1, 40, 10)]
    lines = lines_of(tmp_path, *nodes, *seen, end(50))
    assert kinds(lines, "event")[0]["event"]["node"] == "n2"


def test_a_line_whose_node_cannot_be_told_is_counted(tmp_path: Path) -> None:
    code, _, err = told(tmp_path, node(), node(name="n2"), of("host", 1, None, readings={"uptime_s": 5}))
    assert code == 0
    assert err == "1 lines skipped: they are of a node and name none\n"


def test_a_gpu_that_a_new_inventory_leaves_out_is_missing(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, node(), node(at=10, listed=(0, 1, 3)), end(30))
    assert codes(lines, "condition") == ["gpu_count_mismatch", "gpu_missing"]
    assert final(lines, gpu="GPU-n1-2")["state"] != "healthy"


@pytest.mark.parametrize("listed", [(0, 1, 3), (0, 1)])
def test_a_count_that_differs_is_no_fault_beside_the_gpus_that_are_missing(
    tmp_path: Path, listed: tuple[int, ...]
) -> None:
    lines = lines_of(tmp_path, node(expected_gpus=4), node(at=10, listed=listed, expected_gpus=4), end(30))
    opened = [line for line in kinds(lines, "incident") if line["state"] == "open"]
    assert [line["code"] for line in opened] == ["gpu_missing"] * (4 - len(listed))
    assert "gpu_count_mismatch" in codes(lines, "condition")


def test_a_count_that_differs_by_nobody_knows_which_gpu_is_a_fault(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, node(expected_gpus=5), end(30))
    assert [line["code"] for line in kinds(lines, "incident")] == ["gpu_count_mismatch"]


def test_a_gpu_given_to_a_virtual_machine_is_removed_and_not_missing(tmp_path: Path) -> None:
    bus = [{"pci": "0000:12:00.0", "class": "0x030200", "driver": "vfio-pci"}]
    lines = lines_of(tmp_path, node(), node(at=10, listed=(0, 1, 3), pci_devices=bus), end(30))
    assert not kinds(lines, "condition", "hold", "action")
    assert final(lines, gpu="GPU-n1-2")["state"] == "removed"


def test_a_reset_ends_what_a_reset_ends(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, node(), xid(5, 95), node(at=20, reset=["GPU-n1-0"]), end(25))
    assert [(line["at"], line["state"]) for line in kinds(lines, "condition")] == [(5, "open"), (20, "cleared")]


def test_a_new_boot_id_ends_what_a_reboot_ends(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, node(), xid(5, 79), node(at=200, boot="b2", boot_at=190), end(210))
    assert [line["state"] for line in kinds(lines, "condition")] == ["open", "cleared"]


def test_a_deployment_that_others_manage_is_not_started_by_us(tmp_path: Path) -> None:
    for owner in ("systemd-unit", "kubernetes", "slurm", "hook", "none"):
        lines = lines_of(tmp_path, node(), deployment(managed_by=owner), end(120))
        assert not kinds(lines, "action")
    assert actions(lines_of(tmp_path, node(), deployment(), end(120)), "start_replica")


def test_a_deployment_may_be_pinned(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, node(), deployment(gpus=["GPU-n1-3"]), end(40))
    assert kinds(lines, "action")[0]["target"] == {"node": "n1", "gpus": ["GPU-n1-3"]}


def test_the_first_replica_on_the_ordered_gpus_is_the_one_that_was_ordered(tmp_path: Path) -> None:
    start = [node(), deployment(), replica(0), xid(10, 95)]
    lines = lines_of(tmp_path, *start, replica(20, "R7", (1,), ready=False, phase="starting"), replica(30, "R7", (1,)))
    assert actions(lines, "start_replica")[-1] == (30, "start_replica", "done")
    assert words(lines, replica="R7") == [(10, "starting"), (30, "ready")]
    assert final(lines, replica="R7")["state"] == "ready"


def test_gpus_may_stand_for_members(tmp_path: Path) -> None:
    seen = of("replica", 0, replica="R1", deployment="chat", gpus=["GPU-n1-0"], phase="ready", ready=True, step=1)
    lines = lines_of(tmp_path, node(), deployment(), seen, xid(10, 95), end(20))
    assert {"replica": "R1"} in [line["subject"] for line in kinds(lines, "state")]


def test_an_error_of_the_kernel_log_and_a_jump_of_its_numbers_are_lost_records(tmp_path: Path) -> None:
    gap = [xid(1, 94, seq=101), xid(2, 94, 1, seq=5322)]
    lines = lines_of(tmp_path, node(), *gap, end(5))
    lost = [line["event"] for line in kinds(lines, "event") if line["event"]["code"] == "kernel_records_lost"]
    assert [(event["fields"]["from"], event["fields"]["to"]) for event in lost][:1] == [(102, 5321)]
    assert final(lines)["records_lost"] == 5220
    broken = of("kernel", 2, source="kmsg", error="EPIPE")
    lines = lines_of(tmp_path, node(), xid(1, 94, seq=101), broken, xid(3, 94, 1, seq=5322), end(5))
    assert final(lines)["records_lost"] == 5220


def test_two_gaps_within_a_minute_are_counted_both(tmp_path: Path) -> None:
    gaps = [xid(1, 94, seq=1), xid(2, 94, 1, seq=11), xid(3, 94, 2, seq=21)]
    assert final(lines_of(tmp_path, node(), *gaps, end(5)))["records_lost"] == 18


def test_lines_that_look_like_an_xid_and_cannot_be_read_are_counted(tmp_path: Path) -> None:
    broken = of("kernel", 1, source="kmsg", line="NVRM: Xid error: xyz, invalid data")
    lines = lines_of(tmp_path, node(), broken, end(5))
    assert final(lines)["unparsed"] == 1
    assert not kinds(lines, "event")


def test_an_event_that_the_driver_pushed_waits_five_seconds_for_the_kernels_line(tmp_path: Path) -> None:
    pushed = of("driver_event", 10, source="nvml", pci="0000:11:00", type="xid", data=94)
    (alone,) = kinds(lines_of(tmp_path, node(), pushed, end(30)), "event")
    assert (alone["at"], alone["event"]["code"], alone["event"]["source"]) == (15, "xid:94", "nvml")
    both = kinds(lines_of(tmp_path, node(), pushed, xid(12, 94, 1), end(30)), "event")
    assert [(line["at"], line["event"]["source"]) for line in both] == [(12, "kernel")]


def test_a_person_holds_and_lifts(tmp_path: Path) -> None:
    hold = of("operator", 1, None, do="hold", gpu="GPU-n1-0", by="ann", owner="ops", reason="RMA")
    lift = hold | {"at": 5, "do": "lift", "reason": "back"}
    lines = lines_of(tmp_path, node(), hold, lift)
    assert [(line["op"], line["owner"]) for line in kinds(lines, "hold")] == [("placed", "ops"), ("lifted", "ops")]
    whole = of("operator", 1, "n1", do="hold", by="ann", reason="move")
    assert kinds(lines_of(tmp_path, node(), whole), "hold")[0]["subject"] == {"node": "n1"}


def test_a_person_cancels_drains_releases_and_sets_healthy(tmp_path: Path) -> None:
    start = [node(), deployment(replicas=2), replica(0, "R1", (0,)), replica(0, "R2", (1,))]
    drain = of("operator", 5, None, do="drain", gpu="GPU-n1-0", by="ann", reason="cable")
    cancel = of("operator", 6, None, do="cancel", gpu="GPU-n1-0", by="ann", reason="no")
    lines = lines_of(tmp_path, *start, drain, cancel)
    assert [line["state"] for line in kinds(lines, "action") if line["subject"] == {"replica": "R1"}][-1] == "cancelled"
    healthy = of("operator", 6, None, do="set_healthy", gpu="GPU-n1-0", by="ann", reason="looked")
    lines = lines_of(tmp_path, node(), xid(5, 95), healthy)
    assert kinds(lines, "condition")[-1]["state"] == "cleared"
    release = of("operator", 6, None, do="release", gpu="GPU-n1-0", by="ann", reason="looked")
    lines = lines_of(tmp_path, node(), xid(5, 95), release)
    assert kinds(lines, "incident")[-1]["state"] == "closed"


def test_what_a_person_asks_that_cannot_be_is_refused_with_a_reason(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, node(), of("operator", 1, None, do="hold", gpu="GPU-none", by="ann", reason="x"))
    assert [line["code"] for line in kinds(lines, "note")] == ["refused"]


def test_a_restarted_agent_that_reads_its_log_again_counts_nothing_twice(tmp_path: Path) -> None:
    first = [xid(at, 94, seq=100 + at) for at in range(1, 31)]
    again = [line | {"at": 40} for line in first]
    for kept in (True, False):
        restart = of("restart", 35, of="agent", kept=kept)
        lines = lines_of(tmp_path, node(), *first, restart, *again, end(200))
        assert len({line["event"]["id"] for line in kinds(lines, "event")}) == 1
        assert max(line["event"]["count"] for line in kinds(lines, "event")) == 30


def test_a_controller_without_its_disk_begins_a_new_epoch(tmp_path: Path) -> None:
    restart = of("restart", 20, None, of="controller", kept=False)
    lines = lines_of(tmp_path, node(), xid(5, 95), restart, xid(60, 95, 1), end(70))
    assert {line["token"].split(".")[0] for line in kinds(lines, "action")} == {"1", "2"}


def test_a_restarted_gateway_changes_nothing(tmp_path: Path) -> None:
    restart = of("restart", 20, None, of="gateway", kept=False)
    assert lines_of(tmp_path, node(), xid(5, 95), restart, end(30)) == lines_of(tmp_path, node(), xid(5, 95), end(30))


def test_an_agents_fence_is_a_hold_of_its_own_until_the_policys_hold_replaces_it(tmp_path: Path) -> None:
    fence = of("action", 5, of="fence", gpu="GPU-n1-0", state="done", by="agent", error="xid:79")
    lines = lines_of(tmp_path, node(), fence, xid(5, 79), end(10))
    seen = [(line["op"], line["owner"]) for line in kinds(lines, "hold")]
    assert seen == [("placed", "agent:n1"), ("placed", "policy"), ("lifted", "agent:n1")]


QUIET: list[Json] = [
    of("call", 2, call="nvmlDeviceGetTemperature", gpu="GPU-n1-0", state="returned"),
    of("call", 3, call="nvmlDeviceGetFanSpeed", gpu="GPU-n1-0", state="failed", error="NOT_SUPPORTED", pid=9),
    of("source", 1, source="plugin:roce", state="degraded", unsupported=["x"], remote=True),
    of("check", 1, check="baseline", gpu="GPU-n1-0", result="pass", readings={"gflops": 1}, fatal=False),
    of("check", 1, check="baseline", result="unknown"),
    of("host", 1, readings={"uptime_s": 9}, devices={"nic:mlx5_0": {"state": 1, "link_downed": 0}}),
    of("process", 1, pid=7, start_s=1.5, parent=1, name="python", state="R", replica="R1", used_bytes={"GPU-n1-0": 5}),
    of("process", 2, pid=7, state="gone"),
    of("service", 1, unit="corral-agent.service", active="active", restarts=0, started_at=5.0),
    of("log", 1, replica="R1", rank=0, line="INFO ready"),
    of("report", 28),
    of("reach", 1, None, of="n1", by="gateway", ok=True),
    of("uplink", 1, state="up"),
    of("clock", 1, step_s=-3.5),
    of("driver_event", 1, source="dcgm", type="clock", data=4),
    of("driver_event", 1, source="nvml", type="other", error="UNKNOWN"),
    of("gpu", 1, gpu="GPU-n1-0", readings={"temperature_c": 40}, errors={"fan_ratio": "NOT_SUPPORTED"},
       links={"0": {"state": 1}}, link_errors={"5": {"state": "NOT_SUPPORTED"}}, source="exporter",
       instances={"1/0": {"graphics_active_ratio": 0.5}}, processes=[{"pid": 7, "used_bytes": 5}]),
]  # fmt: skip


@pytest.mark.parametrize("line", QUIET, ids=lambda line: f"{line['obs']}-{line.get('state', line['at'])}")
def test_what_is_in_order_opens_nothing(tmp_path: Path, line: Json) -> None:
    lines = lines_of(tmp_path, node(), line, end(30))
    assert not kinds(lines, "condition", "incident", "hold", "action")


@pytest.mark.parametrize("line", QUIET, ids=lambda line: f"{line['obs']}-{line.get('state', line['at'])}")
def test_it_may_come_before_any_inventory(tmp_path: Path, line: Json) -> None:
    lines_of(tmp_path, line, node(at=line["at"] + 1), end(30))
