"""``corral release``: a person says that a GPU is good again."""

import click

from corral.ask import GPU_NAMES, find_gpu, json_option, url_option
from corral.preview import dry_run_option, order
from corral.terminal import say

HELP = f"""Put a GPU back to service after a repair: its conditions and Corral's own holds end. Holds of people stay;
the next bad signal opens the conditions again.

{GPU_NAMES}"""


@click.command(help=HELP)
@click.argument("gpu")
@click.option("--reason", required=True, help="What was repaired; it is kept in the audit.")
@dry_run_option
@url_option
@json_option
def command(gpu: str, reason: str, dry_run: bool, url: str, as_json: bool) -> None:
    """Release, and name the holds that ended."""
    uuid = find_gpu(url, gpu)
    body = {"subject": {"gpu": uuid}, "reason": reason}
    answer = order(url, "POST", "/api/v1/releases", body, dry_run=dry_run, as_json=as_json)
    if answer is None:
        return
    lines = answer["lines"]
    ended = [line["id"] for line in lines if line["kind"] == "hold" and line["op"] == "lifted"]
    say(f"{uuid} released" + (f"; lifted: {', '.join(ended)}" if ended else ""))
