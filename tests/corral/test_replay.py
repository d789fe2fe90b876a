"""``corral replay``: recordings to decisions, the same bytes each time, errors that name file and line."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from corral.replay import replay

RECORDINGS = Path(__file__).parent.parent / "data" / "recordings"
NAMES = sorted(path.stem for path in RECORDINGS.glob("*.decisions"))
NODE = {
    "obs": "node",
    "at": 0,
    "node": "n1",
    "boot_id": "b1",
    "gpus": [{"uuid": "GPU-1", "index": 0, "pci": "0000:18:00"}],
}
XID_79 = {
    "obs": "kernel", "at": 5, "node": "n1", "source": "dmesg",
    "line": "[ 1005.000000] NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.",
}  # fmt: skip


def play(*paths: Path, policy: Path | None = None, as_json: bool = True, metrics: bool = False) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = replay(list(paths), policy, metrics=metrics, as_json=as_json, out=out, err=err)
    return code, out.getvalue(), err.getvalue()


def write(path: Path, *observations: dict[str, Any] | str) -> Path:
    path.write_text("".join((o if isinstance(o, str) else json.dumps(o)) + "\n" for o in observations))
    return path


def decided(path: Path, **more: Any) -> list[dict[str, Any]]:
    code, out, err = play(path, **more)
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


def essence(line: dict[str, Any]) -> str:
    """What a line decides, without ids that are hashes and words that explain."""
    subject = next(iter(line["subject"].values()), "fleet")
    said = {
        "event": lambda: f"{line['event']['code']} rev {line['event']['rev']}",
        "condition": lambda: f"{line['code']} {line['state']}",
        "incident": lambda: f"{line['code']} {line['state']} {len(line['events'])}",
        "state": lambda: f"{line['from']} -> {line['to']}",
        "hold": lambda: f"{line['op']} {line['owner']}",
        "action": lambda: " ".join([line["of"], line["state"], *line.get("target", {}).get("gpus", ())]),
        "note": lambda: line["code"],
        "final": lambda: line["state"],
    }[line["kind"]]()
    return f"{line['at']:g} {line['kind']} {subject}: {said}"


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_leads_to_the_decisions_beside_it(name: str) -> None:
    found = [essence(line) for line in decided(RECORDINGS / f"{name}.jsonl")]
    assert found == (RECORDINGS / f"{name}.decisions").read_text().splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_input_gives_the_same_bytes(name: str) -> None:
    assert play(RECORDINGS / f"{name}.jsonl") == play(RECORDINGS / f"{name}.jsonl")


@pytest.mark.parametrize("name", NAMES)
def test_lines_of_one_moment_come_by_kind_and_times_never_go_back(name: str) -> None:
    kinds = ["event", "condition", "incident", "state", "hold", "action", "note", "final"]
    order = [(line["at"], kinds.index(line["kind"])) for line in decided(RECORDINGS / f"{name}.jsonl")]
    assert order == sorted(order)


def test_a_line_for_people_names_the_moment_the_subject_and_the_reason() -> None:
    _, out, _ = play(RECORDINGS / "xid_79_drill.jsonl", as_json=False)
    assert "10.0  hold       GPU-n1-0: placed by policy: xid:79: critical, reboot_node is advised" in out
    waiting = "it also takes 2 other GPUs in use"
    assert f"reboot_node waiting: {waiting}" in out


def test_two_files_are_merged_by_time(tmp_path: Path) -> None:
    first = write(tmp_path / "a.jsonl", NODE, {"obs": "end", "at": 20})
    second = write(tmp_path / "b.jsonl", XID_79)
    code, out, _ = play(first, second)
    assert code == 0
    assert next(json.loads(line)["at"] for line in out.splitlines()) == 5


def test_time_goes_on_to_the_end_line(tmp_path: Path) -> None:
    """A source that stays down opens its condition 60 s later, though nothing more is seen."""
    down = {"obs": "source", "at": 1, "node": "n1", "source": "nvml", "state": "down", "error": "TIMEOUT"}
    lines = decided(write(tmp_path / "r.jsonl", NODE, down, {"obs": "end", "at": 100}))
    opened = [(line["at"], line["code"]) for line in lines if line["kind"] == "condition"]
    assert opened == [(61.0, "monitor_unreachable")]
    assert not [line for line in lines if line["kind"] in {"hold", "action"}]


def test_a_policy_file_holds_differences(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('level = "observe"\n')
    lines = decided(RECORDINGS / "xid_79_drill.jsonl", policy=policy)
    assert [line["op"] for line in lines if line["kind"] == "hold"] == ["would_place"]
    states = {line["state"] for line in lines if line["kind"] == "action"}
    assert "would" in states
    assert "ordered" not in states


def test_the_level_of_a_pool_is_that_of_its_nodes(tmp_path: Path) -> None:
    fleet = {"obs": "fleet", "at": 0, "pools": {"test": {"nodes": ["n1"], "level": "observe"}}}
    lines = decided(write(tmp_path / "r.jsonl", fleet, NODE, XID_79))
    assert [line["op"] for line in lines if line["kind"] == "hold"] == ["would_place"]


def test_liveness_is_judged_only_where_there_are_reports(tmp_path: Path) -> None:
    silent = decided(write(tmp_path / "a.jsonl", NODE, {"obs": "end", "at": 300}))
    assert [line["kind"] for line in silent] == ["final"] * 3
    reports = [{"obs": "report", "at": at, "node": "n1"} for at in range(0, 20, 2)]
    lines = decided(write(tmp_path / "b.jsonl", NODE, *reports, {"obs": "end", "at": 300}))
    states = [(line["at"], *line["subject"].values(), line["to"]) for line in lines if line["kind"] == "state"]
    assert states == [(0.0, "n1", "live"), (33.0, "n1", "unknown"), (33.0, "GPU-1", "unknown")]


def test_staleness_is_judged_only_against_a_promised_period(tmp_path: Path) -> None:
    sample = {"obs": "gpu", "at": 1, "node": "n1", "gpu": "GPU-1", "readings": {"temperature_c": 40}}
    lines = decided(write(tmp_path / "r.jsonl", NODE | {"period_s": 20}, sample, {"obs": "end", "at": 300}))
    assert [(line["at"], line["to"]) for line in lines if line["kind"] == "state"] == [(101.0, "unknown")]


def test_an_outcome_is_what_the_recording_shows(tmp_path: Path) -> None:
    fault = XID_79 | {
        "line": "[ 1005.000000] NVRM: Xid (PCI:0000:18:00): 95, pid=7, name=x, Uncontained: LTC TAG (0x1,0x0)."
    }
    done = {"obs": "action", "at": 30, "node": "n1", "of": "reset_gpu", "gpu": "GPU-1", "state": "done"}
    reset = NODE | {"at": 31, "reset": ["GPU-1"]}
    shown = decided(write(tmp_path / "a.jsonl", NODE, fault, done, reset, {"obs": "end", "at": 40}))
    states = [(line["at"], line["of"], line["state"]) for line in shown if line["kind"] == "action"]
    assert states == [(5.0, "reset_gpu", "ordered"), (30.0, "reset_gpu", "done"), (31.0, "validate", "ordered")]
    silent = decided(write(tmp_path / "b.jsonl", NODE, fault, {"obs": "end", "at": 900}))
    assert [line["state"] for line in silent if line["kind"] == "action"][:2] == ["ordered", "timed_out"]


def test_an_unknown_kind_is_skipped_and_counted(tmp_path: Path) -> None:
    code, _, err = play(write(tmp_path / "r.jsonl", NODE, {"obs": "weather", "at": 1, "rain": True}))
    assert code == 0
    assert err == "1 lines skipped: nobody knows the obs 'weather'\n"


def test_a_key_that_nobody_knows_is_ignored(tmp_path: Path) -> None:
    assert play(write(tmp_path / "r.jsonl", NODE | {"colour": "green"}))[0] == 0


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{not json", "not JSON"),
        ('{"at": 3}', "obs"),
        ('{"obs": "end"}', "at"),
        ('{"obs": "end", "at": "noon"}', "at"),
        ('{"obs": "end", "at": -1}', "before"),
        ('{"obs": "node", "at": 3, "node": "n1", "gpus": []}', "boot_id"),
        ('["obs", "at"]', "object"),
    ],
)
def test_bad_input_names_file_and_line(tmp_path: Path, line: str, why: str) -> None:
    path = write(tmp_path / "r.jsonl", NODE, line)
    code, _, err = play(path)
    assert code == 2
    assert f"{path}:2:" in err
    assert why in err
    assert err.count("\n") == 1


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    code, _, err = play(tmp_path / "none.jsonl")
    assert code == 2
    assert "none.jsonl" in err


def test_a_wrong_policy_key_is_named(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("levle = 1\n")
    code, _, err = play(RECORDINGS / "xid_13_stepping.jsonl", policy=policy)
    assert code == 2
    assert "levle" in err


def test_metrics_tell_the_end(tmp_path: Path) -> None:
    code, out, _ = play(RECORDINGS / "xid_79_drill.jsonl", metrics=True)
    assert code == 0
    assert 'corral_holds{owner="policy"} 1.0' in out
    assert '"kind"' not in out


def test_a_controller_that_restarts_in_a_recording_decides_nothing_twice(tmp_path: Path) -> None:
    """A restart between any two observations of the drill changes no decision."""
    drill = (RECORDINGS / "xid_79_drill.jsonl").read_text().splitlines()
    wanted = [essence(line) for line in decided(RECORDINGS / "xid_79_drill.jsonl")]
    for cut in range(1, len(drill)):
        at = json.loads(drill[cut])["at"]
        restart = json.dumps({"obs": "restart", "at": at, "of": "controller", "kept": True})
        path = write(tmp_path / "r.jsonl", *drill[:cut], restart, *drill[cut:])
        assert [essence(line) for line in decided(path)] == wanted, f"restart before line {cut + 1}"
