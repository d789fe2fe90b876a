"""``corral explain``: one GPU's story in order."""

from collections.abc import Sequence
from datetime import UTC, datetime

import click
import msgspec

from corral.ask import GPU_NAMES, ask, find_gpu, json_option, url_option
from vocab.lines import (
    ActionLine,
    AnyLine,
    ConditionLine,
    EventLine,
    HoldLine,
    IncidentLine,
    NoteLine,
    StateLine,
    Subject,
)
from vocab.states import ActionState

SHORT = 16  # of a UUID: enough to tell GPUs apart
DECIDED = frozenset({ActionState.WAITING, ActionState.ORDERED})  # what it takes is the same later


@click.command(help="Tell what happened to a GPU: the raw evidence, each decision and why, and what comes next.\n\n"
               + GPU_NAMES)  # fmt: skip
@click.argument("gpu")
@url_option
@json_option
def command(gpu: str, url: str, as_json: bool) -> None:
    """Print the lines about this GPU in causal order."""
    lines = ask(url, "GET", f"/api/v1/gpus/{find_gpu(url, gpu)}/explain", list[AnyLine])
    for entry in lines if as_json else causal(lines):
        click.echo(msgspec.json.encode(entry) if as_json else story(entry))
    if not lines and not as_json:
        click.echo("Nothing has happened to this GPU.")


def causal(lines: Sequence[AnyLine]) -> list[AnyLine]:
    """The lines for people: of one moment, what a GPU has become comes after what made it so."""
    return sorted(lines, key=lambda line: (line.at, isinstance(line, StateLine)))


def _name(subject: Subject) -> str:
    return (
        subject.gpu
        or subject.replica
        or subject.node
        or subject.deployment
        or subject.link
        or subject.switch
        or "fleet"
    )


def _what(entry: AnyLine) -> str:
    match entry:
        case EventLine(event=event):
            times = f" (×{event.count})" if event.count > 1 else ""
            raw = "".join(f"\n{' ' * 27}{proof.line}" for proof in event.evidence if proof.line)
            return f"saw {event.code}{times}: {event.severity.value}, advice {event.recovery.value}. {event.text}{raw}"
        case ConditionLine():
            return f"condition {entry.code} {entry.state} (clears on {entry.clears_on.value})"
        case IncidentLine():
            closed = f": {entry.closed_because}" if entry.closed_because else ""
            return f"incident {entry.id} {entry.state}, root {entry.code}{closed}"
        case StateLine():
            return f"is now {entry.to} (was {entry.from_ or 'new'}): {entry.why}"
        case HoldLine():
            return f"hold {entry.op} by {entry.owner}: {entry.reason}"
        case ActionLine():
            budget = f" [{entry.budget.of}: {entry.budget.used:g} of {entry.budget.limit:g}]" if entry.budget else ""
            named = ", ".join(_name(subject)[:SHORT] for subject in entry.disrupts if entry.state in DECIDED)
            disrupts = f", disrupts {named}" if named else ""
            return f"action {entry.of.value} {entry.state.value}{budget}: {entry.why}{disrupts}"
        case NoteLine():
            return f"note {entry.code}: {entry.text}"
        case _:
            return f"ends as {entry.state}"


def story(entry: AnyLine) -> str:
    """One line of the story for people."""
    at = datetime.fromtimestamp(entry.at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"
    return f"{at}  {_name(entry.subject)[:SHORT]:{SHORT}}  {_what(entry)}"
