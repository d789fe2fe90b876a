"""``corral pause``: the red button."""

import click

from corral.ask import json_option, url_option
from corral.preview import order
from corral.terminal import say
from vocab.errors import Unreachable

HELP = """Stop all harmful automation now: everywhere, in one pool, or on one node. Events, releases, recovery and
serving go on. Every agent obeys within 5 seconds. With the controller gone, create the file /etc/corral/PAUSE on the
nodes."""
BY_FILE = "Without a controller, this stops it on a node: touch /etc/corral/PAUSE"


@click.command(help=HELP)
@click.option("--pool", help="Only in this pool.")
@click.option("--node", help="Only on this node.")
@click.option("--reason", default="paused by an operator", show_default=True, help="Why; it is shown to everybody.")
@url_option
@json_option
def command(pool: str | None, node: str | None, reason: str, url: str, as_json: bool) -> None:
    """Pause."""
    body = scope(pool, node)
    try:
        answer = order(url, "POST", "/api/v1/pause", {"reason": reason, **body}, as_json=as_json)
    except Unreachable as error:
        raise Unreachable(f"{error} {BY_FILE}") from error
    if answer is None:
        return
    where, option = place(body)
    was = "" if answer["lines"] else ", as it was already"
    say(f"paused {where}{was}: no fence, hold, drain or repair is done until `corral resume{option}`")


def scope(pool: str | None, node: str | None) -> dict[str, str]:
    """What is named, for the body of the request: a pool, a node, or nothing for everything."""
    if pool is not None and node is not None:
        raise click.UsageError("name --pool POOL or --node NODE; neither: everything")
    return {"pool": pool} if pool is not None else {"node": node} if node is not None else {}


def place(body: dict[str, str]) -> tuple[str, str]:
    """The place in words, and the options that name it."""
    if "pool" in body:
        return f"in pool {body['pool']}", f" --pool {body['pool']}"
    return (f"on {body['node']}", f" --node {body['node']}") if body else ("everywhere", "")
