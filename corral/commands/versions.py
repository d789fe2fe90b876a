"""``corral versions``: which driver and firmware runs where."""

from typing import Any

import click
import msgspec

from corral.ask import ask, json_option, url_option
from corral.terminal import say

HELP = """Versions of the driver, CUDA, VBIOS, InfoROM and GSP firmware by pool and board, the usual one marked with *;
then combinations that are known to go wrong."""
NAMED = 6  # nodes named in a line


@click.command(help=HELP)
@url_option
@json_option
def command(url: str, as_json: bool) -> int:
    """Print the matrix."""
    found = ask(url, "GET", "/api/v1/versions", dict[str, Any])
    if as_json:
        say(msgspec.json.encode(found))
    else:
        _print(found)
    drifts = any(part["judged"] and _has_usual(part) and len(part["versions"]) > 1 for part in found["parts"])
    return 1 if drifts or found["known_bad"] else 0


def _has_usual(part: dict[str, Any]) -> bool:
    return any(version["usual"] for version in part["versions"])


def _print(found: dict[str, Any]) -> None:
    for part in found["parts"]:
        where = f"{part['pool'] or '(no pool)'}  {part['part']}" + (f" of {part['board']}" if part["board"] else "")
        say(where)
        for version in part["versions"]:
            mark = "*" if version["usual"] else " "
            names = "" if version["usual"] or len(part["versions"]) == 1 else f"  {_names(version)}"
            say(f"  {mark} {version['version']:24} {_count(version)}{names}")
    for bad in found["known_bad"]:
        say(f"known to go wrong: {bad['what']}: {_count(bad)}  {_names(bad)}")
        say(f"  remedy: {bad['remedy']}; source: {bad['source']}")


def _count(of: dict[str, Any]) -> str:
    return "1 node" if of["count"] == 1 else f"{of['count']} nodes"


def _names(of: dict[str, Any]) -> str:
    more = of["count"] - NAMED
    return ", ".join(of["nodes"][:NAMED]) + (f" and {more} more" if more > 0 else "")
