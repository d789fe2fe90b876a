"""``corral release``: a person says that a GPU is good again."""

import click

from corral.ask import GPU_NAMES, ask, find_gpu, url_option

HELP = f"""Put a GPU back to service after a repair: its conditions and Corral's own holds end. Holds of people stay;
the next bad signal opens the conditions again.

{GPU_NAMES}"""


@click.command(help=HELP)
@click.argument("gpu")
@click.option("--reason", required=True, help="What was repaired; it is kept in the audit.")
@url_option
def command(gpu: str, reason: str, url: str) -> None:
    """Release, and name the holds that ended."""
    uuid = find_gpu(url, gpu)
    lines = ask(url, "POST", "/api/v1/releases", body={"subject": {"gpu": uuid}, "reason": reason})["lines"]
    ended = [line["id"] for line in lines if line["kind"] == "hold" and line["op"] == "lifted"]
    click.echo(f"{uuid} released" + (f"; lifted: {', '.join(ended)}" if ended else ""))
