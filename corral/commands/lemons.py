"""``corral lemons``: cards to look at."""

import click
import msgspec

from controller.core.fleet.lemons import Lemon
from corral.ask import ask, json_option, url_option
from corral.terminal import say


@click.command(
    help="List cards that fail again and again while others of their board do not, the worst first, and why."
)
@click.option("--all", "everything", is_flag=True, help="Also cards that stand out and are no lemons yet.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 1000), help="At most this many.")
@url_option
@json_option
def command(everything: bool, limit: int, url: str, as_json: bool) -> None:
    """Print each with its signals."""
    wanted = "true" if everything else "false"
    found = ask(url, "GET", "/api/v1/lemons", list[Lemon], all=wanted, limit=limit)
    for each in found:
        if as_json:
            say(msgspec.json.encode(each))
            continue
        word = "lemon" if each.lemon else "stands out"
        say(f"{each.gpu}  {each.board or '-'}  score {each.score:g}  {word}")
        for signal in each.signals:
            say(f"  +{signal.points:g}  {signal.text}")
    if not found and not as_json:
        say("No card stands out." if everything else "No card is a lemon; --all lists those that stand out.")
