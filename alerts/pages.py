"""What is written for people from the rules: the head of each runbook, and the table in docs/alerts.md. Pure but for
reading what stands there already, whose other parts are kept."""

import re
from pathlib import Path

from alerts.alert import Alert, Severity
from alerts.house import ALERTS, GROUPS
from alerts.speed import in_time

HEARD = {
    Severity.PAGE: "page: it wakes a person",
    Severity.TICKET: "ticket: for the day",
    Severity.INFO: "info: for other rules and boards",
}
BEGIN, END = "<!-- written by: python -m alerts -->", "<!-- end of what is written -->"
_BETWEEN = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
_SAID = {"gpu": "UUID"}  # "GPU UUID", not "GPU GPU"
_TEMPLATE = re.compile(r"\{\{.*?\}\}")


def generated(root: Path) -> dict[Path, str]:
    """Each file with its generated part as the rules have it now."""
    found = {}
    for name, alert in ALERTS.items():
        path = root / "alerts" / "runbooks" / f"{name}.md"
        found[path] = _put(path, f"# {name}\n\n{BEGIN}\n{END}\n", frame(alert))
    index = root / "alerts" / "runbooks" / "README.md"
    found[index] = _put(index, f"# Runbooks\n\n{BEGIN}\n{END}\n", table("##", ""))
    page = root / "docs" / "alerts.md"
    found[page] = _put(page, f"# Alerts\n\n{BEGIN}\n{END}\n", table("###", "../alerts/runbooks/"))
    return found


def _put(path: Path, otherwise: str, part: str) -> str:
    standing = path.read_text() if path.exists() else otherwise
    return _BETWEEN.sub(lambda _: f"{BEGIN}\n{part}\n{END}", standing)


def frame(alert: Alert) -> str:
    """What a runbook's head says: severity, what the alert says, when it fires."""
    times = [f"for {alert.wait}" if alert.wait else "at once"]
    times += [f"and for {alert.keep} after" if alert.keep else ""]
    return (
        f"**{HEARD[alert.severity]}.** {plain(alert.summary)}.\n\n"
        f"It fires when this has held {' '.join(filter(None, times))}:\n\n"
        f"```promql\n{in_time(alert.expr, 1)}\n```"
    )


def table(heading: str, runbooks: str) -> str:
    """All alerts, each subject under a heading of this level; ``runbooks``: where those lie."""
    rows = []
    for group in GROUPS:
        rows += [f"\n{heading} {group.subject}\n", "| alert | severity | for | says |", "|---|---|---|---|"]
        rows += [
            f"| [{alert.name}]({runbooks}{alert.name}.md) | {alert.severity} | {alert.wait or '0'} "
            f"| {plain(alert.summary)} |"
            for alert in group.alerts
        ]
    return "\n".join(rows).strip("\n")


def plain(text: str) -> str:
    """A template as a person reads it: labels in capitals."""
    named = re.sub(r"\{\{-? *\$labels\.(\w+) *-?\}\}", lambda found: _SAID.get(found[1], found[1].upper()), text)
    valued = re.sub(r"\{\{ *\$value[^}]*\}\}", "N", named)
    chosen = re.sub(r"\{\{ *if .*?\}\}(.*?)\{\{ *else *\}\}(.*?)\{\{ *end *\}\}", r"\1, or: \2", valued)
    return _TEMPLATE.sub("", chosen)
