"""Every rule that ships: Prometheus accepts it, its tests pass, and it asks for what is exported."""

import re
from pathlib import Path

import pytest
import yaml

from alerts.alert import Page, Recording
from alerts.house import ALERTS, GROUPS
from alerts.rules_file import rules_file
from alerts.speed import in_time
from tests.alerts.cases import cases, subjects, written
from tests.alerts.promtool import promtool
from tests.expressions import Series, catalogue, check
from vocab.catalogue.codes import ROWS, XIDS, row
from vocab.metrics import Kind, Metric
from vocab.runbooks import CODES, OTHERWISE, runbook

ROOT = Path(__file__).parents[2]
RULES = ROOT / "alerts" / "rules"
STORIES = sorted((ROOT / "alerts" / "tests").glob("*.yml"))


@pytest.fixture(params=ALERTS.values(), ids=ALERTS)
def alert(request):
    return request.param


def known() -> dict[str, Series]:
    """What is exported, and what the rules record from it."""
    series = catalogue()
    for rule in (rule for group in GROUPS for rule in group.rules):
        if isinstance(rule, Recording):
            faults, labels = check(in_time(rule.expr, 1), series)
            assert faults == [], rule.name
            series[rule.name] = Series(Metric(rule.name, Kind.GAUGE, "Recorded by a rule."), labels)
    return series


KNOWN = known()


def test_the_rules_are_those_that_python_has():
    # python -m alerts
    assert {path.name: path.read_text() for path in RULES.glob("*.yml")} == {
        f"{group.subject}.yml": rules_file(group) for group in GROUPS
    }


def test_prometheus_accepts_the_rules_and_those_of_a_rehearsal(tmp_path):
    # Debian 12's promtool is 2.42: the oldest Prometheus that the rules are made for.
    faster = [tmp_path / f"{group.subject}.yml" for group in GROUPS]
    for path, group in zip(faster, GROUPS, strict=True):
        path.write_text(rules_file(group, 20))
    promtool("check", "rules", "--lint=all", "--lint-fatal", *map(str, [*RULES.glob("*.yml"), *faster]))


@pytest.mark.long
def test_the_rules_fire_and_stay_silent_as_their_promtool_tests_say(tmp_path):
    promtool("test", "rules", *map(str, [*STORIES, *written(tmp_path)]))


def test_every_alert_has_a_firing_and_a_silent_case():
    for group in GROUPS:
        found = cases(group.subject)
        assert list(found) == [each.name for each in group.alerts]
        assert all(case.fires and (case.silent or name == "CorralWatchdog") for name, case in found.items())


def test_every_alert_asks_for_what_is_exported(alert):
    assert check(in_time(alert.expr, 1), KNOWN)[0] == []


def test_an_alert_uses_only_labels_that_it_can_carry(alert):
    _, labels = check(in_time(alert.expr, 1), KNOWN)
    text = alert.summary + alert.description
    assert set(re.findall(r"\$labels\.(\w+)", text)) <= labels
    assert set(cases_of(alert.name).labels) <= labels


def cases_of(name):
    return next(found[name] for subject in subjects() if name in (found := cases(subject)))


def test_every_alert_says_what_to_do_and_only_a_page_says_how_long_to_sleep(alert):
    assert "`" in alert.description, "it names a command"
    assert isinstance(alert.says, Page) == (alert.severity == "page")


def test_alert_names_are_used_once_and_begin_alike():
    names = [each.name for group in GROUPS for each in group.alerts]
    assert len(set(names)) == len(names)
    assert all(name.startswith("Corral") for name in names)


def test_the_certain_xids_of_the_alert_are_those_of_the_catalogue():
    listed = re.search(r'xid=~"([\d|]+)"', ALERTS["CorralGpuFault"].expr)[1].split("|")
    assert listed == [each.code.removeprefix("xid:") for each in XIDS.values() if each.certain]


def conditions_of(alert):
    """The codes that it asks for; of the gateway's answers `code` is a status."""
    named = {code for found in re.findall(r'code=~?"([^"]+)"', alert.expr) for code in found.split("|")}
    return {code for code in named if not code.startswith("5")}


def test_an_alert_speaks_of_conditions_that_there_are(alert):
    assert all(row(code).condition for code in conditions_of(alert))


def test_each_code_leads_to_the_runbook_of_an_alert_about_it():
    codes = [code for found in CODES.values() for code in found]
    assert len(set(codes)) == len(codes)
    assert set(codes) <= ROWS.keys()
    assert {OTHERWISE, *CODES} <= set(ALERTS)
    of_two = {"monitor_unreachable", "probe_permission"}  # of which CorralSourceDown says more
    for each in ALERTS.values():
        assert {runbook(code) for code in conditions_of(each) - of_two} <= {each.name}
    assert runbook("xid:79") == OTHERWISE


def test_a_rehearsal_divides_every_duration_and_changes_nothing_else():
    for group in GROUPS:
        slow, fast = (yaml.safe_load(rules_file(group, by))["groups"][0]["rules"] for by in (1, 60))
        assert [rule.get("alert", rule.get("record")) for rule in slow] == [
            rule.get("alert", rule.get("record")) for rule in fast
        ]
    assert in_time("increase(x[1h:1m] offset 15m) > <10m>", 20) == "increase(x[180s:3s] offset 45s) > 30"
    assert in_time("time() - a > <1d>", 1) == "time() - a > 86400"
