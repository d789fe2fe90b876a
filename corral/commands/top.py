"""``corral top``: what every GPU really does, live."""

import contextlib
import time
from typing import TYPE_CHECKING

import click
import msgspec

from corral.ask import ask, json_option, url_option
from corral.local import local_option
from corral.terminal import say
from vocab.errors import Unreachable

if TYPE_CHECKING:
    from corral.top.scene import Scene

HELP = """Show what every GPU really does, live: state, activity in one word beside utilization, replicas and events.
What deserves a look comes first where not all fit. Ctrl-C ends it.

With --local, or where no controller answers, this node's agent is asked."""
EVENTS = 5


@click.command(help=HELP)
@click.option("--once", is_flag=True, help="Print one frame and end.")
@click.option("--every", type=click.FloatRange(0.5, 60), default=2.0, show_default=True, help="Seconds between looks.")
@url_option
@json_option
@local_option
def command(url: str, every: float, *, once: bool, as_json: bool, local: bool) -> None:
    """Look and show."""
    from rich.console import Console

    from corral.top.frame import frame

    console = Console(highlight=False)
    if as_json:
        say(msgspec.json.encode(_look(url, local=local)))
        return
    if once or not console.is_terminal:
        height = console.height if console.is_terminal else 10_000
        console.print(frame(_look(url, local=local), console.width, height))
        return
    from rich.live import Live

    with Live(console=console, screen=True, auto_refresh=False) as live, contextlib.suppress(KeyboardInterrupt):
        while True:
            live.update(frame(_look(url, local=local, quiet=True), console.width, console.height), refresh=True)
            time.sleep(every)


def _look(url: str, *, local: bool, quiet: bool = False) -> "Scene":
    """The fleet now; of this node alone where that is asked for, or where no controller answers."""
    from corral.local import events_now, instead, node_now
    from corral.top.scene import of_fleet, of_node
    from vocab.events import Event

    if not local:
        try:
            fleet = ask(url, "GET", "/api/v1/fleet")
            return of_fleet(fleet, ask(url, "GET", "/api/v1/events", list[Event], limit=EVENTS), url)
        except Unreachable as error:
            instead(error, quiet=quiet)
    return of_node(node_now(), events_now()[-EVENTS:])
