"""Every rule that ships: Prometheus accepts it, its tests pass, it asks for what is exported, a runbook explains it."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.expressions import Series, catalogue, check
from tests.programs import need
from vocab.catalogue.codes import XIDS
from vocab.metrics import Kind, Metric

ROOT = Path(__file__).parents[2]
RULES = sorted((ROOT / "alerts" / "rules").glob("*.yml"))
RUNBOOKS = ROOT / "docs" / "runbooks"
INSTALL = "apt-get install prometheus"


def groups() -> list[dict]:
    return [group for path in RULES for group in yaml.safe_load(path.read_text())["groups"]]


def rules(kind: str) -> list[dict]:
    """All rules of a kind: ``alert`` or ``record``."""
    return [rule for group in groups() for rule in group["rules"] if kind in rule]


ALERTS = rules("alert")
NAMES = [rule["alert"] for rule in ALERTS]


@pytest.fixture(params=ALERTS, ids=NAMES)
def alert(request):
    return request.param


def known() -> dict[str, Series]:
    """What is exported, and what the rules record from it."""
    series = catalogue()
    for rule in rules("record"):
        faults, labels = check(rule["expr"], series)
        assert faults == [], rule["record"]
        series[rule["record"]] = Series(Metric(rule["record"], Kind.GAUGE, "Recorded by a rule."), labels)
    return series


def promtool(*arguments: str) -> str:
    done = subprocess.run([need("promtool", INSTALL), *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_prometheus_accepts_the_rules(path):
    # Debian 12's promtool is 2.42: the oldest Prometheus that the rules are made for.
    promtool("check", "rules", "--lint=all", "--lint-fatal", str(path))


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_the_rules_fire_and_stay_silent_as_their_promtool_tests_say(path):
    promtool("test", "rules", str(ROOT / "alerts" / "tests" / path.name))


def test_every_alert_has_a_firing_and_a_silent_case(alert):
    [path] = [path for path in RULES if f"alert: {alert['alert']}\n" in path.read_text()]
    cases = yaml.safe_load((ROOT / "alerts" / "tests" / path.name).read_text())["tests"]
    assert any(fires(case, alert["alert"]) for case in cases)
    assert any(is_silent(case) for case in cases)


def fires(case: dict, name: str) -> bool:
    expected = [test for test in case.get("alert_rule_test", []) if test["alertname"] == name]
    samples = [sample for test in case.get("promql_expr_test", []) for sample in test["exp_samples"]]
    return any(test["exp_alerts"] for test in expected) or any(f'"{name}"' in sample["labels"] for sample in samples)


def is_silent(case: dict) -> bool:
    return any("ALERTS" in test["expr"] and not test["exp_samples"] for test in case.get("promql_expr_test", []))


def test_every_alert_asks_for_what_is_exported(alert):
    assert check(alert["expr"], known())[0] == []


def test_an_alert_uses_only_labels_that_it_can_carry(alert):
    _, labels = check(alert["expr"], known())
    text = " ".join(alert["annotations"].values())
    assert set(re.findall(r"\$labels\.(\w+)", text)) <= labels


def test_every_alert_says_how_bad_it_is_and_what_to_do(alert):
    assert alert["labels"]["severity"] in {"warning", "critical"}
    assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}
    assert "`" in alert["annotations"]["description"], "it names a command"


def test_alert_names_are_used_once_and_groups_are_named_by_subject():
    assert len(set(NAMES)) == len(NAMES)
    assert all(group["name"].startswith("corral-") for group in groups())


def test_the_certain_xids_of_the_alert_are_those_of_the_catalogue():
    [rule] = [rule for rule in ALERTS if rule["alert"] == "CorralGpuFault"]
    listed = re.search(r'xid=~"([\d|]+)"', rule["expr"])[1].split("|")
    assert listed == [row.code.removeprefix("xid:") for row in XIDS.values() if row.certain]


def test_every_alert_has_its_runbook(alert):
    name = alert["alert"]
    assert alert["annotations"]["runbook_url"] == f"file:///usr/share/doc/corral/runbooks/{name}.md"
    text = (RUNBOOKS / f"{name}.md").read_text()
    assert text.startswith(f"# {name}\n")
    headings = re.findall(r"(?m)^## (.+)$", text)
    assert headings == [
        "What it means",
        "What Corral has done already",
        "What to look at",
        "How to repair",
        "How it clears",
    ]


def test_every_runbook_belongs_to_an_alert():
    assert {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"} == set(NAMES)
    index = (RUNBOOKS / "README.md").read_text()
    assert all(f"({name}.md)" in index for name in NAMES)
