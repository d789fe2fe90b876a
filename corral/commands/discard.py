"""``corral discard``: a person's answer to too much that looks sick, and to a rule that fell back to shadow."""

import click

from corral.ask import ask, url_option


@click.command(help="After you have looked: drop the cordons and repairs that wait for room. They need fresh evidence "
               "then; budgets count anew, and rules that fell back to shadow act again.")  # fmt: skip
@click.option("--reason", required=True, help="What you found; it is kept in the audit.")
@url_option
def command(reason: str, url: str) -> None:
    """Discard."""
    ask(url, "POST", "/api/v1/discards", body={"reason": reason})
    click.echo("discarded: what waited for room needs fresh evidence; budgets count anew, demoted rules act again")
