"""The findings as a table for people."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from corral.doctor.finding import Finding, Verdict

COLOURS = {
    Verdict.OK: "green",
    Verdict.ABSENT: "bright_black",
    Verdict.MISSING: "yellow",
    Verdict.WRONG: "red",
    Verdict.UNKNOWN: "magenta",
}


def show(findings: Sequence[Finding], console: Console) -> None:
    """Print them, and how many need hands."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("area", no_wrap=True)
    table.add_column("what", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("found, and what to do", overflow="fold", ratio=1)
    area = None
    for finding in findings:
        verdict = f"[{COLOURS[finding.verdict]}]{finding.verdict.value}[/]"
        shown = "" if finding.area == area else finding.area
        how = f"\n[bright_black]→[/] {escape(finding.how)}" if finding.how else ""
        table.add_row(shown, escape(finding.what), verdict, escape(" ".join(finding.found.split())) + how)
        area = finding.area
    console.print(table)
    open_ = sum(not finding.verdict.is_fine for finding in findings)
    console.print("All is there." if open_ == 0 else f"{open_} of {len(findings)} need hands.")
