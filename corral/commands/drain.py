"""``corral drain``: move work away, then keep new work off."""

import click

from corral.ask import GPU_NAMES, find_gpu, json_option, url_option
from corral.preview import dry_run_option, order
from corral.terminal import say

HELP = f"""Hold a GPU (or node, or replica's GPUs), start its replicas elsewhere, and let the old ones end their
requests and stop. Deployments stay at their floor: without a spare the drain waits.

{GPU_NAMES}"""


@click.command(help=HELP)
@click.argument("gpu", required=False)
@click.option("--node", help="Drain a whole node.")
@click.option("--replica", help="Drain one replica.")
@click.option("--reason", required=True, help="Why; it is shown to everybody.")
@click.option("--force", is_flag=True, help="Also where a limit of the policy has no room for it.")
@click.option("--now", is_flag=True, help="End a drain that is under way: open requests end with an error.")
@dry_run_option
@url_option
@json_option
def command(
    gpu: str | None,
    node: str | None,
    replica: str | None,
    reason: str,
    force: bool,
    now: bool,
    dry_run: bool,
    url: str,
    as_json: bool,
) -> None:
    """Order the drain."""
    named = {"gpu": gpu, "node": node, "replica": replica}
    given = {kind: name for kind, name in named.items() if name is not None}
    if len(given) != 1:
        raise click.UsageError("name one GPU, --node NODE or --replica REPLICA")
    subject = {"gpu": find_gpu(url, gpu)} if gpu is not None else given
    body = {"subject": subject, "reason": reason, "force": force, "now": now}
    answer = order(url, "POST", "/api/v1/drains", body, dry_run=dry_run, as_json=as_json)
    if answer is None:
        return
    lines = answer["lines"]
    placed = [line["id"] for line in lines if line["kind"] == "hold" and line["op"] == "placed"]
    holds = f"; hold {', '.join(placed)} placed" if placed else ""
    say(f"drain {'ordered' if lines else 'under way already'}{holds}; watch it with: corral status")
