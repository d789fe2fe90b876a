"""``corral record``: a recording of what a node saw of late."""

import sys

import click

from corral.ask import AGENT, ask, fetch_of_agent, url_option
from vocab.errors import Unreachable


@click.command(help="Print what an agent saw of late as a recording for `corral replay` (JSON Lines).")
@click.option("--agent", envvar="CORRAL_AGENT_URL", default=AGENT, show_default=True, help="The agent's address.")
@url_option
def command(agent: str, url: str) -> None:
    """The ring of an agent, after what its controller wanted."""
    from corral.record import record  # only this command needs it

    ring = fetch_of_agent(agent, "/api/v1/recording")
    try:
        fleet = ask(url, "GET", "/api/v1/fleet")
    except Unreachable as error:
        click.echo(f"corral record: without deployments and level: {error}", err=True)
        fleet = None
    for line in record(ring, fleet):
        sys.stdout.buffer.write(line)
