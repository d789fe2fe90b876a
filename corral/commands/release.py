"""``corral release``: a person says that a GPU is good again."""

import click

from corral.ask import ask, find_gpu, url_option

HELP = """Put a GPU back to service after a repair: its conditions and Corral's own holds end. Holds of people stay; the
next bad signal opens the conditions again."""


@click.command(help=HELP)
@click.argument("gpu")
@click.option("--reason", required=True, help="What was repaired; it is kept in the audit.")
@url_option
def command(gpu: str, reason: str, url: str) -> None:
    """Release."""
    body = {"subject": {"gpu": find_gpu(url, gpu)}, "reason": reason}
    click.echo(ask(url, "POST", "/api/v1/releases", body=body)["outcome"])
