"""``corral explain``: one GPU's story in order."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from corral.ask import GPU_NAMES, ask, gpu_in, json_option, url_option
from corral.local import events_now, gpu_of, instead, local_option, memory, node_now
from corral.terminal import say
from vocab.activity import activity
from vocab.errors import Unreachable
from vocab.events import Event, epoch_s
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
from vocab.readings import Readings
from vocab.states import REPAIRS, ActionState

SHORT = 16  # of a UUID: enough to tell GPUs apart
DECIDED = frozenset({ActionState.WAITING, ActionState.ORDERED})  # what it takes is the same later


HELP = f"""Tell what happened to a GPU: the raw evidence, each decision and why, and what comes next.

{GPU_NAMES}

With --local, or where no controller answers, this node's agent tells what it has seen and done itself."""


@click.command(help=HELP)
@click.argument("gpu")
@url_option
@json_option
@local_option
def command(gpu: str, url: str, *, as_json: bool, local: bool) -> None:
    """Print the lines about this GPU in causal order."""
    now: list[str] = []
    if not local:
        try:
            fleet = ask(url, "GET", "/api/v1/fleet")
            uuid = gpu_in(fleet, gpu)
            lines = ask(url, "GET", f"/api/v1/gpus/{uuid}/explain", list[AnyLine])
            now = [] if as_json else list(_outlook(fleet, uuid, lines))
        except Unreachable as error:
            instead(error)
            local = True
    if local:
        node = node_now()
        uuid = gpu_of(node, gpu)
        lines = of_agent(uuid, events_now())
        now = [*([] if lines else ["It has seen nothing of this GPU."]), *state_here(node, uuid), memory(node)]
    for entry in lines if as_json else causal(lines):
        say(msgspec.json.encode(entry) if as_json else story(entry))
    if not lines and not local and not as_json:
        say("Nothing has happened to this GPU.")
    for words in now if not as_json else ():
        say(words)


def _outlook(fleet: dict[str, Any], uuid: str, lines: Sequence[AnyLine]) -> Iterator[str]:
    from controller.core.fleet.settings import PROBATION_S
    from corral.outlook import outlook

    yield from outlook(fleet, uuid, lines, PROBATION_S)


def of_agent(uuid: str, events: Sequence[Event]) -> list[AnyLine]:
    """What an agent has seen of a GPU, as lines."""
    mine = [event for event in events if event.gpu == uuid and event.at]
    return [EventLine(at=epoch_s(event.at or ""), subject=Subject(gpu=uuid), event=event) for event in mine]


def state_here(node: dict[str, Any], uuid: str) -> Iterator[str]:
    """How a GPU stands, by its agent alone: what the controller has decided is not known here."""
    gpu = next(each for each in node["gpus"] if each["gpu"] == uuid)
    sample = gpu.get("sample") or {}
    readings = msgspec.convert(sample.get("readings"), Readings) if sample.get("readings") else None
    doing = activity(readings)
    known = f"cannot be read: {sample['error']}" if sample.get("error") else str(doing) if doing else "activity unknown"
    state = "fenced by this agent" if gpu["fenced"] else "not fenced"
    yield f"Now: GPU {gpu['index']} of {node['node']} is {state}; {known if sample else 'no fresh reading'}."
    for replica in node["replicas"]:
        if uuid in {member["gpu"] for member in replica.get("members", ())}:
            yield f"Replica {replica['replica']}: {replica.get('phase', 'starting')}."
    link = node["controller"]
    answers = "answers" if link["up"] else "does not answer"
    paused = "; automation is paused here" if node["paused"] else ""
    yield f"Its controller {link['url']} {answers}; holds and repairs are decided there{paused}."


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
            takes = ", ".join(_name(subject)[:SHORT] for subject in entry.disrupts if entry.state in DECIDED)
            disrupts = f", disrupts {takes}" if takes else ""
            over = tuple(entry.target.by_node) if entry.target is not None else ()
            where = f" on {' and '.join(over)}" if over else ""
            named = f" as {entry.id}" if entry.state is ActionState.WAITING and entry.of in REPAIRS else ""
            return f"action {entry.of.value} {entry.state.value}{named}{where}{budget}: {entry.why}{disrupts}"
        case NoteLine():
            return f"note {entry.code}: {entry.text}"
        case _:
            return f"ends as {entry.state}"


def story(entry: AnyLine) -> str:
    """One line of the story for people."""
    at = datetime.fromtimestamp(entry.at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"
    return f"{at}  {_name(entry.subject)[:SHORT]:{SHORT}}  {_what(entry)}"
