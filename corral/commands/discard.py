"""``corral discard``: a person's answer to too much that looks sick, and to a rule that fell back to shadow."""

import click

from corral.ask import json_option, url_option
from corral.preview import dry_run_option, order
from corral.terminal import say


@click.command(help="After you have looked: drop the cordons and repairs that wait for room. They need fresh evidence "
               "then; budgets count anew, and rules that fell back to shadow act again.")  # fmt: skip
@click.option("--reason", required=True, help="What you found; it is kept in the audit.")
@dry_run_option
@url_option
@json_option
def command(reason: str, dry_run: bool, url: str, as_json: bool) -> None:
    """Discard."""
    if order(url, "POST", "/api/v1/discards", {"reason": reason}, dry_run=dry_run, as_json=as_json) is not None:
        say("discarded: what waited for room needs fresh evidence; budgets count anew, demoted rules act again")
