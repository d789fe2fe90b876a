"""``corral pause``: the red button."""

import click

from corral.ask import ask, url_option


@click.command(help="Stop all harmful automation now. Releases and recovery go on. With the controller gone, create "
               "the file /etc/corral/PAUSE on a node instead.")  # fmt: skip
@click.option("--reason", default="paused by an operator", show_default=True, help="Why; it is shown to everybody.")
@url_option
def command(reason: str, url: str) -> None:
    """Pause."""
    ask(url, "POST", "/api/v1/pause", body={"reason": reason})
    click.echo("paused: no fence, hold, drain or repair is done until `corral resume`")
