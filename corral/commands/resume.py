"""``corral resume``: end a pause."""

import click

from corral.ask import ask, json_option, url_option
from corral.commands.pause import place, scope
from corral.commands.status import pause_words
from corral.preview import order
from corral.terminal import say


@click.command(help="End one pause: that of everything, of a pool or of a node. Others go on, and are named.")
@click.option("--pool", help="The pause of this pool.")
@click.option("--node", help="The pause of this node.")
@click.option("--reason", default="resumed by an operator", show_default=True, help="Why; it is kept in the audit.")
@url_option
@json_option
def command(pool: str | None, node: str | None, reason: str, url: str, as_json: bool) -> None:
    """Resume, and name the pauses that still stand."""
    body = scope(pool, node)
    answer = order(url, "POST", "/api/v1/resume", {"reason": reason, **body}, as_json=as_json)
    if answer is None:
        return
    where, _ = place(body)
    say(f"resumed {where}" if answer["lines"] else f"no pause stood {where}")
    for pause in ask(url, "GET", "/api/v1/fleet").get("pauses", ()):
        say(f"still paused {pause_words(pause)}")
