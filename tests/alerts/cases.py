"""The hand-written cases of alerts/cases as files that promtool can test: each alert firing, silent, and without data.

promtool needs 0.1 s and more for each test, and evaluates each of its rules at each step until the last look. So
cases that share no metric share a test if they are looked at at the same time, and a test has only the rules of its
alerts and the records that they may rest on.
"""

import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from alerts.alert import Group, Recording
from alerts.house import ALERTS, GROUPS
from alerts.rules_file import rules_file

ROOT = Path(__file__).parents[2]
CASES = ROOT / "alerts" / "cases"
RECORDS = tuple(rule for group in GROUPS for rule in group.rules if isinstance(rule, Recording))

_ABOUT = re.compile(r'([^{]+)(?:\{(code="[^"]*"))?')  # a metric, and the code that it begins its labels with


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One alert's. ``fires``, ``silent``: values by series; ``without``: why it fires without any data."""

    fires: dict[str, str]
    silent: dict[str, str]
    labels: dict[str, str] = msgspec.field(name="as", default_factory=dict)
    every: str = "1m"
    at: str = "30m"
    without: str = ""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """An alert, the series that it sees, and the labels with which it must fire; None: it must not."""

    alert: str
    series: dict[str, str]
    at: str
    fires_as: dict[str, str] | None
    looks_at: frozenset[str]  # what no other trial beside it may touch


def metrics(case: Case) -> frozenset[str]:
    """What a case is about; conditions of different codes are different things."""
    return frozenset("".join(_ABOUT.match(each).groups("")) for each in case.fires | case.silent)


def subjects() -> list[str]:
    return [group.subject for group in GROUPS]


def cases(subject: str) -> dict[str, Case]:
    """Those of a subject's file, by alert."""
    return msgspec.convert(yaml.safe_load((CASES / f"{subject}.yml").read_text()), dict[str, Case])


def trials(name: str, case: Case) -> list[Trial]:
    """Firing, silent, and with the silent one's series gone after two samples."""
    fires = {"alertname": name, **case.labels}
    always = fires if name == "CorralWatchdog" else None
    gone = {each: f"{values.split('x')[0].split('+')[0].split()[0]} _ stale" for each, values in case.silent.items()}
    missed = {"alertname": name, "job": "corral-controller"} if case.without else always
    told = ((case.fires, fires), (case.silent, always), (gone, missed))
    return [
        Trial(alert=name, series=series, at=case.at, fires_as=fires_as, looks_at=metrics(case) | {name})
        for series, fires_as in told
    ]


def written(folder: Path) -> list[Path]:
    """promtool's files: the cases of one subject that are looked at alike, split so that none disturbs another."""
    paths = []
    for subject in subjects():
        found = cases(subject)
        for every, at in sorted({(case.every, case.at) for case in found.values()}):
            alike = {name: case for name, case in found.items() if (case.every, case.at) == (every, at)}
            mine = [trial for name, case in alike.items() for trial in trials(name, case)]
            for number, together in enumerate(_shared(mine)):
                name = f"{subject}-{every}-{at}-{number}"
                rules = folder / f"{name}.rules"
                rules.write_text(_rules(subject, together))
                content = {
                    "rule_files": [str(rules)],
                    "evaluation_interval": every,
                    "tests": [_test(together, every)],
                }
                paths.append(folder / f"{name}.yml")
                paths[-1].write_text(yaml.safe_dump(content))
    return paths


def _rules(subject: str, together: list[Trial]) -> str:
    """Their alerts as they ship, and the records that these name."""
    alerts = tuple(ALERTS[each] for each in dict.fromkeys(trial.alert for trial in together))
    records = tuple(record for record in RECORDS if any(record.name in alert.expr for alert in alerts))
    return rules_file(Group(subject=subject, head="Of a test.", rules=(*records, *alerts)))


def _shared(found: list[Trial]) -> list[list[Trial]]:
    """Trials that do not disturb each other together."""
    bins: list[tuple[set[str], list[Trial]]] = []
    for trial in found:
        free = next((each for each in bins if not each[0] & trial.looks_at), None)
        if free is None:
            free = (set(), [])
            bins.append(free)
        free[0].update(trial.looks_at)
        free[1].append(trial)
    return [trials for _, trials in bins]


def _test(together: list[Trial], every: str) -> dict[str, Any]:
    series = {each: values for trial in together for each, values in trial.series.items()}
    return {
        "name": ", ".join(f"{each.alert} {'fires' if each.fires_as else 'is silent'}" for each in together),
        "interval": every,
        "input_series": [{"series": each, "values": values} for each, values in series.items()],
        "promql_expr_test": [_expected(each) for each in together],
    }


def _expected(trial: Trial) -> dict[str, Any]:
    firing = f'ALERTS{{alertname="{trial.alert}",alertstate="firing"}}'
    labels = ", ".join(f'{key}="{value}"' for key, value in (trial.fires_as or {}).items())
    return {
        "expr": f"sum without (alertstate, severity, subject) ({firing})",
        "eval_time": trial.at,
        "exp_samples": [{"labels": f"{{{labels}}}", "value": 1}] if trial.fires_as else [],
    }
