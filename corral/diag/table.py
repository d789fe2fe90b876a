"""Checks as a table for people, and the one answer that follows from them."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vocab.observations import Check

COLOURS = {"pass": "green", "problem": "red", "unknown": "magenta"}


def show(checks: Sequence[Check], console: Console) -> None:
    """Print them by GPU, and how many there are of each kind."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("GPU", no_wrap=True)
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("found", overflow="fold", ratio=1)
    last: str | None = ""
    for check in sorted(checks, key=lambda each: each.gpu or "~"):  # what is of no GPU in particular comes last
        gpu = "" if check.gpu == last else (check.gpu or "the node").removeprefix("GPU-")[:8]
        code = f"{check.code}: " if check.code else ""
        result = f"[{COLOURS.get(check.result, 'white')}]{escape(check.result)}[/]"
        table.add_row(gpu, escape(check.check), result, escape(code + " ".join((check.text or "").split())))
        last = check.gpu
    console.print(table)
    counts = {result: sum(check.result == result for check in checks) for result in COLOURS}
    console.print(", ".join(f"{count} {result}" for result, count in counts.items()))


def exit_code(checks: Sequence[Check]) -> int:
    """1 if there is a problem. What is unknown is neither proof nor failure."""
    return int(any(check.result == "problem" for check in checks))
