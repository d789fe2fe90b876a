"""``corral hold``: take a GPU or node out of service."""

import click

from corral.ask import GPU_NAMES, find_gpu, json_option, url_option
from corral.preview import dry_run_option, order
from corral.terminal import say

HELP = f"""Place a hold: the GPU (or node) takes no new work until you lift it. What runs there goes on; to move it away
as well, use `corral drain`.

{GPU_NAMES}"""


@click.command(help=HELP)
@click.argument("gpu", required=False)
@click.option("--node", help="Hold a whole node instead of a GPU.")
@click.option("--reason", required=True, help="Why; it is shown to everybody.")
@click.option("--force", is_flag=True, help="Hold it also where a limit of the policy has no room for it.")
@dry_run_option
@url_option
@json_option
def command(
    gpu: str | None, node: str | None, reason: str, force: bool, dry_run: bool, url: str, as_json: bool
) -> None:
    """Place an operator's hold and print its id."""
    if (gpu is None) == (node is None):
        raise click.UsageError("name one GPU or --node NODE")
    subject = {"node": node} if node else {"gpu": find_gpu(url, str(gpu))}
    body = {"subject": subject, "reason": reason, "force": force}
    hold = order(url, "POST", "/api/v1/holds", body, dry_run=dry_run, as_json=as_json)
    if hold is None:
        return
    say(f"hold {hold['id']} placed; lift it with: corral lift {hold['id']} --reason …")
