"""``corral approve``: a person allows what waits."""

import click

from corral.ask import url_option
from corral.preview import dry_run_option, order


@click.command(help="Allow an action that waits for a person (see `corral status`).")
@click.argument("action")
@click.option("--reason", default="approved by an operator", show_default=True, help="Why; it is kept in the audit.")
@dry_run_option
@url_option
def command(action: str, reason: str, dry_run: bool, url: str) -> None:
    """Approve."""
    if order(url, "POST", "/api/v1/approvals", {"action": action, "reason": reason}, dry_run=dry_run) is not None:
        click.echo(f"{action} approved")
