"""How a GPU stands, and what comes next and when: the last lines of its story. Pure: the controller's answers in."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from corral.leave import allowed_by
from vocab.catalogue.brief import ENDS
from vocab.lines import ActionLine, AnyLine
from vocab.states import ActionKind, ActionState, ClearsOn, Phase

STARTED = frozenset({ActionState.ORDERED, ActionState.RUNNING})


def outlook(fleet: Mapping[str, Any], gpu: str, lines: Sequence[AnyLine], probation_s: float) -> Iterator[str]:
    """The lines; of a GPU that is not in the fleet any more, none."""
    found = next(((node, each) for node in fleet["nodes"] for each in node["gpus"] if each["uuid"] == gpu), None)
    if found is None:
        return
    node, now = found
    word = "in probation" if now["state"] == Phase.PROBATION else now["state"]
    yield f"Now: GPU {node['node']}/{now['index']} is {word}{_until(now, gpu, lines, probation_s)}."
    steps = [*_actions(fleet, lines), *_incidents(fleet, now), *_holds(now)]
    yield from steps or ["Nothing of it is open: nothing comes next."]


def _until(now: Mapping[str, Any], gpu: str, lines: Sequence[AnyLine], probation_s: float) -> str:
    """When a probation ends, if no new condition comes."""
    passed = [
        line.at for line in lines
        if isinstance(line, ActionLine) and line.of is ActionKind.VALIDATE
        and line.state is ActionState.DONE and line.subject.gpu == gpu
    ]  # fmt: skip
    if now.get("phase") != Phase.PROBATION or not passed:
        return ""
    return f" until {stamp(passed[-1] + probation_s)}; then it takes work again, if nothing new is seen"


def _actions(fleet: Mapping[str, Any], lines: Sequence[AnyLine]) -> Iterator[str]:
    last = {line.id: line for line in lines if isinstance(line, ActionLine)}
    for line in last.values():
        if line.state in STARTED:
            latest = f", {stamp(line.at + line.ttl_s)} at the latest" if line.ttl_s else ""
            yield f"Under way: {line.of.value} {line.id} ({line.state.value} {stamp(line.at)}{latest}): {line.why}"
    for action in fleet["actions_waiting"]:
        if action["id"] in last:
            yield f"Waits: {action['of']} {action['id']}: {action['why']}"
            allow = allowed_by(action, fleet)
            if allow is not None:
                yield f"    allow it with: {allow}"
    for action in fleet.get("actions_paused", ()):
        if action["id"] in last:
            yield f"Paused: {action['of']} {action['id']}: {action['why']}"


def _incidents(fleet: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    mine = set(now.get("incidents", ()))
    for incident in fleet["incidents_open"]:
        if incident["id"] in mine:
            halted = fleet.get("halted", {}).get(incident["id"])
            goes = f": goes no further by itself: {halted}" if halted else ""
            yield f"Open: incident {incident['id']}, {incident['code']} {incident['severity']}{goes}"


def _holds(now: Mapping[str, Any]) -> Iterator[str]:
    for hold in now["holds"]:
        clears = hold.get("clears_on")
        until = f"ends {stamp(hold['until'])}" if hold.get("until") else ""
        ends = until or (f"its cause ends {ENDS[ClearsOn(clears)]}" if clears and hold["owner"] == "policy" else "")
        ends = ends or f"ends with `corral lift {hold['id']}`"
        yield f"Held: {hold['id']} by {hold['owner']}: {hold['reason']}; {ends}"


def stamp(at: float) -> str:
    """A moment, as the story has it."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%SZ")
