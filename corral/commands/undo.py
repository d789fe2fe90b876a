"""``corral undo``: take back what automation did lately."""

import click

from corral.ask import json_option, url_option
from corral.duration import Duration
from corral.preview import dry_run_option, order
from corral.terminal import say

HELP = """Take back what automation did: its holds since then are lifted, and what has not ended is called off (drains,
repairs that wait or have not begun). What cannot be taken back, such as a reset that ran, is named. The same old
evidence holds nothing again; new evidence does."""


@click.command(help=HELP)
@click.option("--since", type=Duration(), required=True, help="How far back: 90s, 10m, 2h, 1d.")
@click.option("--rule", help="Only what was done for this code, such as xid:48.")
@click.option("--reason", default="undone by an operator", show_default=True, help="Why; it is kept in the audit.")
@dry_run_option
@url_option
@json_option
def command(since: float, rule: str | None, reason: str, dry_run: bool, url: str, as_json: bool) -> int:
    """Undo, and say what was lifted, what was called off and what stays done."""
    body = {"since_s": since, "reason": reason, **({"rule": rule} if rule else {})}
    if dry_run or as_json:
        order(url, "POST", "/api/v1/undo", body, dry_run=dry_run, as_json=as_json)
        return 0
    answer = order(url, "POST", "/api/v1/undo", body)
    lifted, called_off, stays = 0, 0, 0
    for line in answer["lines"]:
        if line["kind"] == "hold" and line["op"] == "lifted":
            lifted += 1
            say(f"lifted {line['id']} on {_name(line['subject'])}")
        elif line["kind"] == "action" and line["state"] == "cancelled":
            called_off += 1
            say(f"called off {line['of']} of {_name(line['subject'])}")
        elif line["kind"] == "note" and line["code"] == "not_undone":
            stays += 1
            say(f"cannot undo, on {_name(line['subject'])}: {line['text']}")
    say(f"{lifted} holds lifted, {called_off} actions called off, {stays} things that cannot be undone")
    return 0 if lifted or called_off else 1


def _name(subject: dict[str, str | None]) -> str:
    return next((value for value in subject.values() if value), "the fleet")
