"""``corral approve``: a person allows what waits."""

import click

from corral.ask import ask, url_option


@click.command(help="Allow an action that waits for a person (see `corral status`).")
@click.argument("action")
@click.option("--reason", default="approved by an operator", show_default=True, help="Why; it is kept in the audit.")
@url_option
def command(action: str, reason: str, url: str) -> None:
    """Approve."""
    ask(url, "POST", "/api/v1/approvals", body={"action": action, "reason": reason})
    click.echo(f"{action} approved")
