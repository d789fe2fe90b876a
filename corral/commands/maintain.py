"""``corral maintain``: hold, drain and silence of a node together, and their end."""

import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import click
import msgspec

from corral.ask import ask, json_option, url_option
from corral.duration import Duration
from corral.moment import Moment
from corral.preview import dry_run_option, order
from corral.terminal import say

HELP = """Work on NODE: it takes no new work, its replicas move away, nothing is fenced or repaired there, and nothing
about it is told (nor by an Alertmanager that the controller knows) until a time at which the controller ends it by
itself. Said again, it moves the end. `corral maintain list` shows those under way."""


@click.command(help=HELP)
@click.argument("node", metavar="NODE|list")
@click.option("--until", type=Moment(), help="When it ends: 17:30, 2026-12-01T17:30, or with a zone.")
@click.option("--for", "lasts", type=Duration(), help="How long it takes: 90m, 3h, 2d.")
@click.option("--end", is_flag=True, help="End it now.")
@click.option("--reason", help="Why; it is shown to everybody.")
@click.option("--force", is_flag=True, help="Also where a limit of the policy has no room for it.")
@dry_run_option
@url_option
@json_option
def command(node: str, until: float | None, lasts: float | None, end: bool, reason: str | None, force: bool,
            dry_run: bool, url: str, as_json: bool) -> None:  # fmt: skip
    """Begin, move, end or list."""
    if node == "list":
        _list(url, as_json=as_json)
        return
    if reason is None:
        raise click.UsageError("say why with --reason; it is shown to everybody")
    if sum((until is not None, lasts is not None, end)) != 1:
        raise click.UsageError("say one of --until, --for and --end")
    if end:
        path = f"/api/v1/maintenances/{quote(node, safe='')}"
        answer = order(url, "DELETE", path, {"reason": reason}, dry_run=dry_run)
        said = f"{node}: its maintenance has ended"
    else:
        moment = until if until is not None else time.time() + (lasts or 0.0)
        body = {"node": node, "until": moment, "reason": reason, "force": force}
        answer = order(url, "POST", "/api/v1/maintenances", body, dry_run=dry_run)
        said = f"{node}: maintenance until {_when(moment)}; watch its drain with: corral status"
    if answer is not None:
        say(msgspec.json.encode(answer) if as_json else said)


def _list(url: str, *, as_json: bool) -> None:
    found: list[dict[str, Any]] = ask(url, "GET", "/api/v1/maintenances")
    for hold in found:
        if as_json:
            say(msgspec.json.encode(hold))
        else:
            say(f"{hold['subject']['node']}  until {_when(hold['until'])}  {hold['reason']}")
    if not found and not as_json:
        say("No maintenance is under way.")


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%MZ")
