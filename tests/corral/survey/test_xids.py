"""Xids by a gauge that holds the last one: what a change of it is, and what nobody can see in it."""

import subprocess
from pathlib import Path

import pytest
import yaml

from corral.survey.fleet import Board, Fleet
from corral.survey.prometheus import OVERLAP_S, has_changed
from corral.survey.study import Card, Finding, Node
from corral.survey.xids import boots, judged, xids
from tests.programs import need
from vocab.events import Event

AT = 1_796_000_000.0
HOUR = 3600.0
BOARDS = {f"GPU-{n}": Board(node="n1", uuid=f"GPU-{n}", index=n, pci=f"0000:0{n}:00", board="H100") for n in range(4)}


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        ([0, 0, 79, 79], [(2, 79)]),
        ([13, 13, 79, 13], [(2, 79), (3, 13)]),
        ([79, 0, 79], [(2, 79)]),
        ([79, 79], []),  # it stood there before: nobody knows since when
        ([0, float("nan"), 31], [(2, 31)]),
        ([0, 79, 2.0**63, 79], [(1, 79)]),  # a blank of DCGM's
    ],
)
def test_a_change_is_an_xid(numbers: list[float], found: list[tuple[int, int]]) -> None:
    points = [(float(at), number) for at, number in enumerate(numbers)]
    assert list(xids(reversed(points), seen_from=1.0)) == found


def test_a_gauge_that_comes_where_others_were_before_comes_with_an_xid() -> None:
    assert list(xids([(50.0, 79.0)], seen_from=20.0)) == [(50.0, 79)]


def told(*found: tuple[float, int]) -> list[Event]:
    return judged(BOARDS, {"GPU-1": list(found)})


def test_it_is_judged_as_the_agent_would() -> None:
    (event,) = told((AT, 79))
    assert (event.node, event.gpu, event.code, event.source) == ("n1", "GPU-1", "xid:79", "exporter")
    assert (event.severity, event.recovery, event.boot_id) == ("critical", "reboot_node", None)


def test_what_the_log_tells_of_is_not_counted_twice() -> None:
    log = Node("n1", cards={"0000:01:00": Card("0000:01:00", "GPU-1")}, boots=[(None, "b1")], events=told((AT, 79)))
    fleet = Fleet([Finding(nodes=[log])], BOARDS.values())
    said = fleet.said(told((AT + 45.0, 79), (AT + HOUR, 48)))
    events = [(at, event.code) for at, event in said if isinstance(event, Event)]
    assert events == [(AT, "xid:79"), (AT + HOUR, "xid:48")]


def test_the_driver_was_loaded_anew_where_the_energy_of_half_of_a_nodes_gpus_fell() -> None:
    step = 300.0
    fell = [AT + nth * step for nth in range(12)]  # lower than an hour before, for an hour
    again = [AT + 9 * HOUR]
    assert boots(BOARDS, {"GPU-0": fell, "GPU-1": [*fell, *again], "GPU-2": again}, step) == {"n1": [AT, AT + 9 * HOUR]}
    assert boots(BOARDS, {"GPU-0": fell}, step) == {}  # a GPU alone was reset


def test_only_gpus_whose_gauge_has_changed_are_asked_for_every_sample(tmp_path: Path) -> None:
    def series(gpu: str, code: int, values: str) -> dict[str, str]:
        labels = f'UUID="{gpu}",err_code="{code}"'
        return {"series": f"DCGM_FI_DEV_XID_ERRORS{{{labels}}}", "values": values}

    minutes = int(2 * HOUR / 60)
    case = {
        "interval": "1m",
        "input_series": [
            series("GPU-still", 0, f"0x{minutes}"),
            series("GPU-old", 13, f"13x{minutes}"),
            series("GPU-new", 0, f"0x30 _x{minutes}"),
            series("GPU-new", 79, f"_x31 79x{minutes - 31}"),
            series("GPU-first", 79, f"_x60 79x{minutes - 60}"),
        ],
        "promql_expr_test": [
            {
                "expr": has_changed("DCGM_FI_DEV_XID_ERRORS|DCGM_FI_DEV_XID_ERROR", "UUID", 2 * HOUR),
                "eval_time": f"{minutes}m",
                "exp_samples": [{"labels": f'{{UUID="{gpu}"}}', "value": 79} for gpu in ("GPU-new", "GPU-first")],
            }
        ],
    }
    assert OVERLAP_S < HOUR
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump({"rule_files": [], "evaluation_interval": "1m", "tests": [case]}))
    promtool = need("promtool", "apt-get install prometheus")
    done = subprocess.run([promtool, "test", "rules", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
