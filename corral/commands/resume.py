"""``corral resume``: end a pause."""

import click

from corral.ask import ask, url_option


@click.command(help="Let automation act again.")
@click.option("--reason", default="resumed by an operator", show_default=True, help="Why; it is kept in the audit.")
@url_option
def command(reason: str, url: str) -> None:
    """Resume."""
    ask(url, "POST", "/api/v1/resume", body={"reason": reason})
    click.echo("resumed")
