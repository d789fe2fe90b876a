"""``corral incident``: faults as stories, and what a person says of them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import click
import msgspec

from corral.ask import ask, json_option, url_option, without_login
from corral.commands.explain import causal, story
from corral.preview import order
from corral.terminal import say
from corral.words import places
from vocab.errors import InputError, Refused
from vocab.lines import ActionLine, AnyLine
from vocab.runbooks import runbook
from vocab.states import REPAIRS, ActionState


@click.group(help="Incidents: the conditions, decisions, actions and outcomes of one fault each.")
def command() -> None:
    """Incidents."""


@command.command("list", help="List incidents, the latest last: the open ones, or all.")
@click.option("--all", "everything", is_flag=True, help="Closed ones too.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 1000), help="At most this many.")
@url_option
@json_option
def list_(everything: bool, limit: int, url: str, as_json: bool) -> None:
    """Print one incident a line."""
    found = ask(url, "GET", "/api/v1/incidents", state=None if everything else "open", limit=limit)
    if as_json:
        for each in found:
            say(msgspec.json.encode(each))
    elif found:
        _table(found, places(ask(url, "GET", "/api/v1/fleet")))
    else:
        say("There are no incidents." if everything else "No incident is open; --all lists closed ones.")


def _standing(incident: dict[str, Any]) -> str:
    """Whether it is open: "updated" only says how its line came to be."""
    return "closed" if incident["state"] == "closed" else "open"


HEAD = ("INCIDENT", "LAST CHANGE", "STATE", "CODE", "SEVERITY", "ABOUT")


def _table(incidents: Sequence[dict[str, Any]], gpus: dict[str, str]) -> None:
    """One a line, each column as wide as it must be."""
    rows = [HEAD, *(_row(each, gpus) for each in incidents)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        say("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _row(each: dict[str, Any], gpus: dict[str, str]) -> tuple[str, ...]:
    at = datetime.fromtimestamp(each["at"], UTC).strftime("%Y-%m-%d %H:%MZ")
    about = ", ".join(gpus.get(name, name) for name in each["subject"].values() if name)
    closed = f": {each['closed_because']}" if each.get("closed_because") else ""
    return each["id"], at, _standing(each), each["code"], each["severity"], f"{about}{closed}"


SHOW = """Tell one incident's story: evidence, decisions and why, outcomes, verdicts. INCIDENT is its id, or a beginning
that no other of the last thousand has."""


@command.command(help=SHOW)
@click.argument("incident")
@url_option
@json_option
def show(incident: str, url: str, as_json: bool) -> None:
    """Print its lines in causal order, and what comes next."""
    told = _story(url, incident)
    lines = msgspec.convert(told["lines"], list[AnyLine])
    for entry in lines if as_json else causal(lines):
        say(msgspec.json.encode(entry) if as_json else story(entry))
    if not as_json:
        about = told["incident"]
        stands = f"{about['severity']}, {_standing(about)}"
        say(f"\n{about['code']} on {told['place']}: {stands}, advice {about['recovery']}")
        if told["halted"]:
            say(f"It goes no further by itself: {told['halted']}")
        for action in waiting(lines):
            say(f"{action.of.value} waits: {action.why}. What it disrupts: corral approve {action.id} --dry-run")
        book = runbook(about["code"])
        say(f"What to do: corral runbook {book}, or {without_login(url)}/runbooks/{book}")


def _story(url: str, name: str) -> Any:
    """What the controller tells of the incident of this id, or of the only one whose id begins so."""
    try:
        return ask(url, "GET", f"/api/v1/incidents/{quote(name, safe='')}")
    except Refused:
        known = [each["id"] for each in ask(url, "GET", "/api/v1/incidents", limit=1000)]
        found = [each for each in known if name and each.startswith(name)]
        if len(found) > 1:
            said = f"{len(found)} incidents begin with {name!r}: {', '.join(found[:5])}"
            raise InputError(f"{said}; `corral incident list --all` lists them") from None
        if not found:
            raise
        return ask(url, "GET", f"/api/v1/incidents/{found[0]}")


def waiting(lines: Sequence[AnyLine]) -> list[ActionLine]:
    """The repairs that wait, and not for room in a budget."""
    last = {line.id: line for line in lines if isinstance(line, ActionLine)}
    return [
        each for each in last.values()
        if each.of in REPAIRS and each.state is ActionState.WAITING and each.budget is None
    ]  # fmt: skip


CLOSE = """End an incident: what it is about is well, its hold is lifted, and its node looks at the GPU anew. With a
verdict, say whether Corral was right to act (or to say that it would). Rules whose holds are wrong too often fall back
to shadow; `corral policy status` shows the record of each. A verdict can be given, or changed, after the end."""


@command.command(help=CLOSE)
@click.argument("incident")
@click.option("--verdict", type=click.Choice(["right", "wrong"]), help="Whether Corral was right about it.")
@click.option("--reason", default="", help="Why; it is kept with the incident and in the audit.")
@url_option
@json_option
def close(incident: str, verdict: str | None, reason: str, url: str, as_json: bool) -> None:
    """Close it."""
    body = {"verdict": verdict, "reason": reason}
    answer = order(url, "POST", f"/api/v1/incidents/{incident}/close", body, as_json=as_json)
    if answer is None:
        return
    lines = answer["lines"]
    closed = [line for line in lines if line["kind"] == "incident"]
    lifted = [line["id"] for line in lines if line["kind"] == "hold" and line["op"] == "lifted"]
    words = ["closed"] if closed else []
    words += [f"hold {', '.join(lifted)} lifted"] if lifted else []
    words += [f"noted that Corral was {verdict}"] if verdict else []
    say(f"{incident}: {'; '.join(words)}")
    for line in lines:
        if line["kind"] == "note" and line["code"] == "rule_demoted":
            say(line["text"])
