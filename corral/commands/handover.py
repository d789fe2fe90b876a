"""``corral handover``: what the next shift has to know."""

import time

import click
import msgspec

from corral.ask import ask, json_option, url_option
from corral.duration import Duration
from corral.terminal import say

HELP = """Say what changed lately, and which incidents are open, by what comes next: for a change of shift."""
MOST = 1000


@click.command(help=HELP)
@click.option("--since", "lasts", type=Duration(), default="12h", show_default=True, help="How far back: 90m, 8h, 2d.")
@url_option
@json_option
def command(lasts: float, url: str, *, as_json: bool) -> int:
    """Ask, and tell."""
    from corral.handover import handover, text
    from corral.terminal import width

    since = time.time() - lasts
    made = handover(
        since,
        ask(url, "GET", "/api/v1/fleet"),
        ask(url, "GET", "/api/v1/incidents", state="finished", limit=MOST),
        ask(url, "GET", "/api/v1/actions", state="finished", limit=MOST),
        ask(url, "GET", "/api/v1/audit", limit=MOST),
        ask(url, "GET", "/api/v1/events", since=since, severity="error", limit=MOST),
    )
    if as_json:
        say(msgspec.json.encode(made))
    else:
        for line in text(made, width()):
            say(line)
    return 1 if any(what.startswith(("approve", "a person")) for what in made.next) else 0
