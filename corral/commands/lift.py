"""``corral lift``: lift a hold."""

import click

from corral.ask import json_option, url_option
from corral.preview import dry_run_option, order
from corral.terminal import say


@click.command(help="Lift one hold by its id (see `corral status` or the page). Others on the same GPU stay.")
@click.argument("hold")
@click.option("--reason", required=True, help="Why; it is kept in the audit.")
@click.option("--force", is_flag=True, help="Lift it even though somebody else placed it.")
@dry_run_option
@url_option
@json_option
def command(hold: str, reason: str, force: bool, dry_run: bool, url: str, as_json: bool) -> None:
    """Lift a hold."""
    body = {"reason": reason, "force": force}
    if order(url, "DELETE", f"/api/v1/holds/{hold}", body, dry_run=dry_run, as_json=as_json) is not None:
        say(f"hold {hold} lifted")
