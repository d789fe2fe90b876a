"""A month of 2,000 GPUs, played: who is paged, how often, and whether there was anything to do.

    python -m tests.bench.month [--days 30] [--seed 1]

Faults come at the rates that were published for such fleets (Llama 3 on H100, Meta's RSC clusters, Delta), whichever
GPU it is. Once a week something takes many at once. A model of Corral answers: a hold at once, a replacement within
minutes while GPUs are free, a reset, a reboot, or a quarantine until a person has exchanged the board. The rules
themselves are not modelled: promtool evaluates those that ship, in windows around every change, and Alertmanager's
inhibition is that of alerts/alertmanager.yml. One node is blind all month, as one always is. Errors that users get
are not modelled, so nothing burns a budget here.
"""

import argparse
import random
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import msgspec
import yaml

from alerts.alert import Group, Recording, Severity
from alerts.house import ALERTS, GROUPS
from alerts.rules_file import rules_file
from tests.alerts.inhibition import inhibited
from tests.alerts.promtool import program

ROOT = Path(__file__).parents[2]
NODES, GPUS_OF_NODE = 250, 8
DEPLOYMENTS, REPLICAS, FLOOR = 40, 45, 40  # one GPU each: 1,800 of 2,000, so 200 are free
DAY = 24 * 60  # times are minutes
BEFORE, AFTER = 20, 40  # of a window around a change

# Kind: rate for a GPU and hour, whether a node's eight go, minutes of repair, share that needs a new board.
FAULTS = {
    "off the bus": (3e-6, True, 12, 0.3),
    "memory, uncorrectable": (3.5e-6, False, 2, 0.1),
    "SRAM": (9e-7, False, 2, 0.2),
    "GSP": (1.4e-6, True, 12, 0.0),
    "NVLink": (2e-6, False, 3, 0.1),
    "PMU": (5e-7, False, 2, 0.0),
    "host": (6e-7, True, 30, 0.5),
    "wrong results": (3e-7, False, 2, 1.0),
    "engine": (1e-5, False, 0, 0.0),
}
WEEKLY = (
    "a switch: 4 nodes for 30 minutes",
    "a roll-out that blinds 20 nodes for an hour",
    "a power feed: 30 nodes for two hours",
    "a controller that cannot start for 20 minutes",
)
NEEDS_PERSON = {WEEKLY[1], WEEKLY[2], WEEKLY[3]}


class Change(msgspec.Struct, frozen=True):
    """From ``at`` to ``until``: GPUs in a state, replicas missing or starting, nodes blind, the controller away."""

    at: int
    until: int
    what: str
    cause: str
    count: int = 1
    deployment: int = 0


class Told(msgspec.Struct, frozen=True):
    """A page, and the causes that stood then."""

    at: int
    alert: str
    deployment: str
    causes: tuple[str, ...]

    @property
    def needed(self) -> bool:
        """Whether a person had to act."""
        return bool(set(self.causes) & NEEDS_PERSON)


class Month:
    """What happens, drawn from one seed."""

    def __init__(self, days: int, seed: int) -> None:
        self.random = random.Random(seed)
        self.end = days * DAY
        self.changes: list[Change] = []
        self.count: dict[str, int] = defaultdict(int)
        for kind, (rate, whole, minutes, swapped) in FAULTS.items():
            expected = rate * NODES * GPUS_OF_NODE * days * 24
            for _ in range(self._poisson(expected)):
                self._fault(kind, self.random.randrange(self.end), GPUS_OF_NODE if whole else 1, minutes, swapped)
        for week in range(days // 7):
            self._weekly(WEEKLY[week % len(WEEKLY)], week * 7 * DAY + self.random.randrange(7 * DAY))

    def _poisson(self, expected: float) -> int:
        """How many come where ``expected`` are to be expected."""
        count, passed = 0, self.random.expovariate(1)
        while passed < expected:
            count, passed = count + 1, passed + self.random.expovariate(1)
        return count

    def _fault(self, kind: str, at: int, gpus: int, minutes: int, swapped: float) -> None:
        self.count[kind] += 1
        self._replaced(kind, at, gpus)
        if minutes:
            self._add(at, minutes, "repairing", kind, gpus)
            self._add(at + minutes, 10, "probation", kind, gpus)
        if self.random.random() < swapped:
            self._add(at + minutes + 10, round(self.random.uniform(1, 3) * DAY), "quarantined", kind, 1)

    def _replaced(self, cause: str, at: int, gpus: int) -> None:
        """Each replica starts elsewhere within one to four minutes, one in fifty only at a later try."""
        for _ in range(gpus):
            deployment = self.random.randrange(DEPLOYMENTS)
            slow = 15 if self.random.random() < 0.02 else 0
            minutes = self.random.randint(1, 4) + slow
            self._add(at, minutes, "missing", cause, 1, deployment)
            self._add(at, minutes, "starting", cause, 1, deployment)

    def _weekly(self, what: str, at: int) -> None:
        self.count[what] += 1
        numbers = re.findall(r"(\d+) nodes", what)
        nodes = int(numbers[0]) if numbers else 0
        if what == WEEKLY[0]:
            self._add(at, 30, "blind", what, nodes)
            self._add(at, 30, "lost", what, nodes * GPUS_OF_NODE)
            self._replaced(what, at, nodes * GPUS_OF_NODE)
        elif what == WEEKLY[1]:
            self._add(at, 60, "blind", what, nodes)
            self._add(at, 60, "unknown", what, nodes * GPUS_OF_NODE)
        elif what == WEEKLY[2]:
            self._add(at, 120, "blind", what, nodes)
            self._add(at, 120, "lost", what, nodes * GPUS_OF_NODE)
            self._replaced(what, at, 200)  # as many as GPUs are free
            for _ in range(nodes * GPUS_OF_NODE - 200):
                self._add(at, 120, "missing", what, 1, self.random.randrange(DEPLOYMENTS))
        elif what == WEEKLY[3]:
            self._add(at, 20, "away", what)

    def _add(self, at: int, minutes: int, what: str, cause: str, count: int = 1, deployment: int = 0) -> None:
        self.changes.append(Change(at, at + max(1, minutes), what, cause, count, deployment))

    def windows(self) -> list[tuple[int, int]]:
        """Stretches in which something changes; between them all stands still."""
        found: list[tuple[int, int]] = []
        edges = {edge for each in self.changes for edge in (each.at, each.until)}
        lasting = (each for each in self.changes if each.what in {"blind", "away"})
        edges.update(edge for each in lasting for edge in range(each.at, each.until, BEFORE))  # seen whole
        for edge in sorted(edge for edge in edges if edge < self.end):
            begin, end = max(0, edge - BEFORE), edge + AFTER
            if found and begin <= found[-1][1]:
                found[-1] = (found[-1][0], end)
            else:
                found.append((begin, end))
        return found

    def series(self, begin: int, end: int) -> dict[str, str]:
        """What the processes export in this window, a sample a minute, as promtool writes it."""
        inside = [each for each in self.changes if each.at < end and each.until >= begin]
        minutes = range(begin, end)

        def total(what: str, deployment: int | None = None) -> list[int]:
            mine = [e for e in inside if e.what == what and deployment in (None, e.deployment)]
            return [sum(e.count for e in mine if e.at <= minute < e.until) for minute in minutes]

        states = {state: total(state) for state in ("repairing", "probation", "quarantined", "lost", "unknown")}
        healthy = [NODES * GPUS_OF_NODE - sum(column) for column in zip(*states.values(), strict=True)]
        found = {f'corral_gpus{{state="{state}"}}': values for state, values in (states | {"healthy": healthy}).items()}
        for one in sorted({each.deployment for each in inside if each.what in {"missing", "starting"}}):
            name = f'{{deployment="d{one}"}}'
            found[f"corral_replicas_ready{name}"] = [max(0, REPLICAS - gone) for gone in total("missing", one)]
            found[f"corral_replicas_starting{name}"] = total("starting", one)
            found[f"corral_replicas_wanted{name}"] = [REPLICAS] * len(minutes)
            found[f"corral_replicas_floor{name}"] = [FLOOR] * len(minutes)
        away = total("away")
        found['up{job="corral-controller",instance="c:7400"}'] = [0 if gone else 1 for gone in away]
        blind = total("blind")
        for node in range(NODES if any(blind) else 1):
            up = [0 if node <= count else 1 for count in blind]  # node 0 always
            found[f'up{{job="corral-agent",node="n{node}"}}'] = up
            found[f'corral_node_info{{node="n{node}"}}'] = [1] * len(minutes)
            if not any(blind):
                found.pop(f'corral_node_info{{node="n{node}"}}')
        return {name: runs(values) for name, values in found.items()}

    def causes(self, minute: int) -> tuple[str, ...]:
        """What stands then, or did within the last minutes."""
        return tuple(sorted({each.cause for each in self.changes if each.at <= minute <= each.until + 15}))


def runs(values: Iterable[int]) -> str:
    """Values as promtool has them: equal ones as one run."""
    written: list[list[int]] = []
    for value in values:
        if written and written[-1][0] == value:
            written[-1][1] += 1
        else:
            written.append([value, 0])
    return " ".join(f"{value}x{more}" if more else str(value) for value, more in written)


def loud_rules() -> dict[str, str]:
    """The rules that page, what keeps pages back, and what both rest on."""
    loud = {name for name, alert in ALERTS.items() if alert.severity is Severity.PAGE}
    loud |= {"CorralReplacing"}
    files = {}
    for group in GROUPS:
        kept = tuple(rule for rule in group.rules if isinstance(rule, Recording) or rule.name in loud)
        if kept:
            files[group.subject] = rules_file(Group(subject=group.subject, head=group.head, rules=kept))
    return files


_GOT = re.compile(r"time: ([\dhms]+),\s+exp: nil\s+got: (.*?)(?=\n\s+expr:|\n\s+FAILED|\Z)", re.DOTALL)
_FIRING = re.compile(r'alertname="(\w+)"([^}]*)')


def play(month: Month, folder: Path, windows: Iterable[tuple[int, int]] | None = None) -> list[Told]:
    """All pages of the month, or of some windows of it, as Alertmanager would send them."""
    for name, text in loud_rules().items():
        (folder / f"{name}.yml").write_text(text)
    pages: list[Told] = []
    for begin, end in windows if windows is not None else month.windows():
        test = {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in month.series(begin, end).items()],
            "promql_expr_test": [
                {"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{minute}m", "exp_samples": []}
                for minute in range(5, end - begin)
            ],
        }
        rules = [str(path) for path in folder.glob("*.yml") if not path.name.startswith("window")]
        content = {"rule_files": rules, "evaluation_interval": "1m", "tests": [test]}
        (folder / "window.yaml").write_text(yaml.safe_dump(content))
        command = [program(), "test", "rules", str(folder / "window.yaml")]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        pages += sent(firing(said.stdout + said.stderr), month, begin)
    return pages


def firing(said: str) -> dict[int, list[dict[str, str]]]:
    """By minute the alerts that fired, from what promtool found against the expectation that none does."""
    found: dict[int, list[dict[str, str]]] = {}
    for time, got in _GOT.findall(said):
        hours, minutes = (re.search(rf"(\d+){unit}", time) for unit in "hm")
        minute = 60 * int(hours[1] if hours else 0) + int(minutes[1] if minutes else 0)
        found[minute] = [
            {"alertname": name, **dict(re.findall(r'(\w+)="([^"]*)"', rest))} for name, rest in _FIRING.findall(got)
        ]
    return found


def sent(by_minute: dict[int, list[dict[str, str]]], month: Month, begin: int) -> list[Told]:
    """What reaches a person: pages that nothing keeps back, once each while they last; those of one minute are one."""
    rules = yaml.safe_load((ROOT / "alerts" / "alertmanager.yml").read_text())["inhibit_rules"]
    told: list[Told] = []
    known: dict[tuple[str, str], int] = {}
    for minute, alerts in sorted(by_minute.items()):
        loud = [each for each in alerts if each["severity"] == "page" and not inhibited(each, alerts, rules)]
        for each in loud:
            key = (each["alertname"], each.get("deployment", ""))
            if known.get(key, -99) < minute - 5:
                told.append(Told(begin + minute, *key, month.causes(begin + minute)))
            known[key] = minute
    grouped = {(page.at, page.deployment): page for page in reversed(told)}
    return sorted(grouped.values(), key=lambda page: page.at)


def table(month: Month, pages: list[Told]) -> str:
    """What happened and who was woken."""
    lines = ["| what happened | times |", "|---|---|"]
    lines += [f"| {kind} | {count} |" for kind, count in month.count.items()]
    lines += ["", "| day | page | deployment | because of | a person was needed |", "|---|---|---|---|---|"]
    lines += [
        f"| {page.at / DAY:.1f} | {page.alert} | {page.deployment} | {', '.join(page.causes)} "
        f"| {'yes' if page.needed else 'NO'} |"
        for page in pages
    ]
    return "\n".join([*lines, "", f"{len(pages)} pages, {sum(not page.needed for page in pages)} of them for nothing."])


def main() -> None:
    """Play it and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    month = Month(given.days, given.seed)
    with tempfile.TemporaryDirectory() as folder:
        print(table(month, play(month, Path(folder))))


if __name__ == "__main__":
    main()
