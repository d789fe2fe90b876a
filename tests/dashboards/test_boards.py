"""Every board that ships: current, whole, and asking only for what is exported."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
import yaml

from dashboards.__main__ import REPOSITORY, generated
from dashboards.recorded import GROUPS, RECORDED, XID_ERRORS, XIDS
from tests.expressions import catalogue, check, recorded, substitute
from tests.programs import need
from tests.units import shown_as

JSON = REPOSITORY / "dashboards" / "json"
RULES = REPOSITORY / "dashboards" / "rules" / "boards.yml"
KNOWN = catalogue() | recorded()
BOARDS = sorted(path.name for path in JSON.glob("*.json"))


@pytest.fixture(params=BOARDS)
def board(request):
    return json.loads((JSON / request.param).read_text())


def panels(board) -> Iterator[dict]:
    """The panels that draw something."""
    return (panel for panel in board["panels"] if panel["type"] != "row")


def targets(board) -> Iterator[tuple[dict, dict]]:
    return ((panel, target) for panel in panels(board) for target in panel["targets"])


@pytest.mark.parametrize("name", sorted(generated()))
def test_a_generated_file_is_current(name):
    assert (REPOSITORY / name).read_bytes() == generated()[name], "run: python -m dashboards"


def test_no_board_lies_in_the_folder_that_nothing_generates():
    assert {f"dashboards/json/{name}" for name in BOARDS} == {name for name in generated() if name.endswith(".json")}


def test_files_are_the_truth(board):
    assert board["id"] is None
    assert board["editable"] is False
    assert board["uid"].startswith("corral-")
    assert f"{board['uid']}.json" in BOARDS


def test_panels_are_numbered_once_and_do_not_overlap(board):
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(set(numbers)) == len(numbers)
    for one, other in combinations([panel["gridPos"] for panel in board["panels"]], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above, (one, other)
        assert one["x"] + one["w"] <= 24


def test_every_panel_says_what_good_looks_like(board):
    for panel in panels(board):
        assert re.search(r"\b[Gg]ood\b", panel["description"]), panel["title"]


def test_every_query_asks_the_data_source_that_was_chosen(board):
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    for panel, target in targets(board):
        assert panel["datasource"] == target["datasource"] == chosen
    assert next(variable["type"] for variable in board["templating"]["list"]) == "datasource"
    assert all(mark["datasource"] == chosen for mark in board["annotations"]["list"])


def test_every_expression_asks_for_what_is_exported(board):
    wrong = {target["expr"]: check(target["expr"], KNOWN)[0] for _, target in targets(board)}
    wrong |= {mark["expr"]: check(mark["expr"], KNOWN)[0] for mark in board["annotations"]["list"]}
    assert {expression: faults for expression, faults in wrong.items() if faults} == {}


def test_the_oldest_prometheus_accepts_every_expression(board, tmp_path):
    # As rules, for promtool checks no bare expressions; Debian 12's is 2.42.
    asked = [target["expr"] for _, target in targets(board)] + [mark["expr"] for mark in board["annotations"]["list"]]
    rules = [{"record": f"asked:{number}", "expr": substitute(text)} for number, text in enumerate(asked)]
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": rules}]}))
    promtool = need("promtool", "apt-get install prometheus")
    done = subprocess.run([promtool, "check", "rules", "--lint=none", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_legend_and_mark_uses_labels_that_the_result_carries(board):
    texts = [(target["expr"], target["legendFormat"]) for _, target in targets(board)]
    texts += [(mark["expr"], mark["textFormat"]) for mark in board["annotations"]["list"]]
    for expression, text in texts:
        _, labels = check(expression, KNOWN)
        assert set(re.findall(r"\{\{(\w+)\}\}", text)) <= labels, (expression, text)


def test_every_unit_is_that_of_its_expression(board):
    for panel, target in targets(board):
        assert unit_of(panel, target) in shown_as(target["expr"]), (panel["title"], target["expr"])


def unit_of(panel: dict, target: dict) -> str:
    """Of what this query fills: the panel's, unless the field that is named like its legend has one of its own."""
    own = (each for each in panel["fieldConfig"]["overrides"] if each["matcher"]["options"] == target["legendFormat"])
    units = (option["value"] for each in own for option in each["properties"] if option["id"] == "unit")
    return next(units, panel["fieldConfig"]["defaults"]["unit"])


def test_every_recorded_series_is_computed_from_what_is_exported():
    assert {row.name: check(row.expr)[0] for row in RECORDED.values()} == {name: [] for name in RECORDED}


def test_every_recorded_series_is_on_a_board():
    asked = " ".join(path.read_text() for path in JSON.glob("*.json"))
    assert [name for name in RECORDED if name not in asked] == []


def test_what_is_counted_by_the_minute_counts_from_one_evaluation_to_the_next():
    interval, rows = GROUPS["corral-boards-minute"]
    counted = [row.expr for row in rows if "xids_total" in row.expr]
    assert counted
    assert {found for expr in counted for found in re.findall(r"offset (\w+)", expr)} == {interval}


def between(*counts):
    """Scrapes each 15 s that are between two evaluations, as values each 5 s."""
    return " ".join(f"_ {count} _" for count in counts)


def counted(interval, series, recorded, by, *found):
    """A case of promtool's: what a recorded series comes to in nine minutes."""
    return {
        "interval": interval,
        "input_series": [{"series": name + '{node="n1",gpu="GPU-1"' + more, "values": v} for name, more, v in series],
        "promql_expr_test": [
            {
                "expr": f"sum by ({by}) (sum_over_time({recorded}[9m]))",
                "eval_time": "9m",
                "exp_samples": [{"labels": labels, "value": value} for labels, value in found],
            }
        ],
    }


TOTAL = "corral_gpu_xids_total"
CODES = "corral_gpu_xid_errors_total"


def test_xids_are_counted_once_and_exactly(tmp_path):
    n1 = '{node="n1"}'

    def total(interval, values, count):
        return counted(interval, [(TOTAL, "}", values)], XIDS.name, "node", *([(n1, count)] if count else ()))

    def code(total, values, *found):
        series = [(TOTAL, "}", total), (CODES, ',xid="31"}', values)]
        return counted("15s", series, XID_ERRORS.name, "xid", *(('{xid="31"}', count) for count in found))

    cases = [
        total("15s", "0+0x10 1+0x9 3+0x20", 3),
        total("1s", "0x40 3x600", 3),  # scraped more often: three are three
        total("5s", between(*[7] * 11, *[8] * 10, *[48] * 20), 41),  # one, and later forty at one time
        total("15s", "7x10 0x3 2x30", 2),  # its agent began anew
        total("15s", "7x8 _x4 9x30", 2),  # and was not to be had for a minute, meanwhile two came
        total("15s", "_x20 7x30", 0),  # here it was never asked before: nobody knows when these were
        code("0x9 1x30", "_x10 1x30", 1),  # the first of its code
        code("0x9 1x10 3x20", "_x10 1x10 3x20", 3),
        code("_x20 4x30", "_x20 4x30"),
    ]
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": cases}))
    promtool = need("promtool", "apt-get install prometheus")
    done = subprocess.run([promtool, "test", "rules", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout


def test_the_rules_of_the_boards_are_accepted():
    promtool = need("promtool", "apt-get install prometheus")
    done = subprocess.run([promtool, "check", "rules", str(RULES)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_variable_is_a_label_of_its_metric(board):
    known = catalogue()
    asked = [variable["query"] for variable in board["templating"]["list"] if variable["type"] == "query"]
    for query in asked:
        expression, label = re.fullmatch(r"label_values\((.+), (\w+)\)", query).groups()
        assert check(expression)[0] == []
        assert label in known[re.match(r"\w+", expression)[0]].labels


def test_every_variable_that_is_used_exists(board):
    declared = {variable["name"] for variable in board["templating"]["list"]}
    for _, target in targets(board):
        used = {name for name in re.findall(r"\$\{?(\w+)", target["expr"]) if not name.startswith("__")}
        assert used <= declared


def test_the_gpu_board_shows_utilization_beside_what_the_chip_does():
    board = json.loads((JSON / "corral-gpu.json").read_text())
    truth = next(panel for panel in panels(board) if "utilization_ratio" in panel["targets"][0]["expr"])
    shown = {target["expr"].split("{")[0] for target in truth["targets"]}
    assert shown >= {"corral_gpu_utilization_ratio", "corral_gpu_sm_active_ratio", "corral_gpu_dram_active_ratio"}


def test_provisioning_keeps_edits_off_and_names_its_data_source():
    provider = provisioned("dashboards")["providers"][0]
    assert (provider["type"], provider["allowUiUpdates"]) == ("file", False)
    source = provisioned("datasources")["datasources"][0]
    assert (source["type"], source["editable"]) == ("prometheus", False)


def test_grafana_knows_how_often_prometheus_scrapes():
    prometheus = yaml.safe_load((REPOSITORY / "deploy/prometheus/prometheus.yml").read_text())
    source = provisioned("datasources")["datasources"][0]
    assert source["jsonData"]["timeInterval"] == prometheus["global"]["scrape_interval"]


def provisioned(what: str) -> dict:
    path: Path = REPOSITORY / "dashboards" / "provisioning" / what / "corral.yml"
    return yaml.safe_load(path.read_text())


def test_without_what_the_tests_need_it_says_what_to_run():
    code = (
        "import runpy, sys; sys.modules['grafana_foundation_sdk'] = None;"
        " runpy.run_module('dashboards', run_name='__main__')"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, "Traceback" in ended.stderr) == (1, "", False)
    assert ended.stderr.strip().endswith("run: make dashboards")
