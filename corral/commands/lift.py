"""``corral lift``: lift a hold."""

import click

from corral.ask import ask, url_option


@click.command(help="Lift one hold by its id (see `corral status --json` or the page). Others on the same GPU stay.")
@click.argument("hold")
@click.option("--reason", required=True, help="Why; it is kept in the audit.")
@click.option("--force", is_flag=True, help="Lift it even though somebody else placed it.")
@url_option
def command(hold: str, reason: str, force: bool, url: str) -> None:
    """Lift a hold."""
    ask(url, "DELETE", f"/api/v1/holds/{hold}", body={"reason": reason, "force": force})
    click.echo(f"hold {hold} lifted")
