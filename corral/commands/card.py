"""``corral card``: one card's history, wherever it was."""

from datetime import UTC, datetime
from urllib.parse import quote

import click
import msgspec

from corral.ask import ask, find_gpu, json_option, url_option
from corral.commands.explain import story
from corral.terminal import say
from vocab.errors import InputError
from vocab.lines import AnyLine


@click.command(help="Tell a card's history: where it was and when, faults by code, holds, repairs, verdicts.")
@click.argument("card", metavar="SERIAL|GPU")
@url_option
@json_option
def command(card: str, url: str, as_json: bool) -> None:
    """Print it; a name that is no serial number is that of a GPU as other commands take it."""
    known = ask(url, "GET", "/api/v1/cards", serial=card, limit=1)
    name = card if known else _gpu(url, card)
    told = ask(url, "GET", f"/api/v1/cards/{quote(name, safe='')}")
    if as_json:
        say(msgspec.json.encode(told))
        return
    for gpu in told["gpus"]:
        say(f"{gpu['board'] or 'GPU'}, serial {gpu['serial'] or 'not told'}, {gpu['uuid']}")
    say("Places:")
    for stay in told["places"]:
        until = _at(stay["until"]) if stay["until"] is not None else "now"
        say(f"  {_at(stay['since'])} to {until:19}  {stay['node']} {stay['pci']}  {stay['uuid'][:12]}")
    say("Faults:" if told["faults"] else "No fault is on record.")
    for each in told["faults"]:
        say(f"  {each['events']:6}  {each['code']:22} last {_at(each['last'])}")
    for part in ("holds", "repairs", "verdicts"):
        if told[part]:
            say(f"{part.capitalize()}:")
        for line in msgspec.convert(told[part], list[AnyLine]):
            say(f"  {story(line)}")


def _gpu(url: str, name: str) -> str:
    """The UUID that other commands would take; a name that only the ledger knows stays as it is."""
    try:
        return find_gpu(url, name)
    except InputError as error:
        if not name.startswith("GPU-"):
            raise InputError(f"no board has the serial number {name!r}, and {error}") from error
        return name


def _at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
