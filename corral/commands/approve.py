"""``corral approve``: a person allows what waits."""

import click

from corral.ask import json_option, url_option
from corral.preview import dry_run_option, order
from corral.terminal import say


@click.command(help="Allow an action that waits for a person (see `corral status`).")
@click.argument("action")
@click.option("--reason", default="approved by an operator", show_default=True, help="Why; it is kept in the audit.")
@click.option("--force", is_flag=True, help="Do it also if a deployment is then under its floor.")
@dry_run_option
@url_option
@json_option
def command(action: str, reason: str, force: bool, dry_run: bool, url: str, as_json: bool) -> None:
    """Approve."""
    body = {"action": action, "reason": reason, "force": force}
    if order(url, "POST", "/api/v1/approvals", body, dry_run=dry_run, as_json=as_json) is not None:
        say(f"{action} approved")
