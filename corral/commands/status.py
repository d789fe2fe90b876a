"""``corral status``: the fleet at one glance."""

import time
from typing import Any

import click
import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from corral.ask import ask, json_option, url_option
from corral.leave import allowed_by
from corral.terminal import columns, say
from corral.words import places, readings_now

COLOURS = {
    "healthy": "green",
    "degraded": "yellow",
    "unknown": "bright_black",
    "cordoned": "magenta",
    "fenced": "magenta",
    "draining": "yellow",
    "failed": "red",
    "lost": "red",
}
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))
OTHERS = "other_remediator"  # the condition of a node that somebody else has in hand


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:4.0%}"


def _figure(value: float | None, unit: str, scale: float = 1.0) -> str:
    return "–" if value is None else f"{value / scale:.0f} {unit}"


def _gpus(node: dict[str, Any]) -> Table:
    virtual = "  [black on yellow] VIRTUAL [/]" if node["virtual"] else ""
    title = f"[bold]{escape(node['node'])}[/]{virtual}  {node['state']}, level {node['level']}"
    table = Table(title=title, title_justify="left", title_style="", box=SIMPLE_HEAD, padding=(0, 0, 0, 1))
    for column in ("GPU", "UUID", "state", "replica"):
        table.add_column(column, no_wrap=True)
    for column in ("util", "SM act", "temp", "power", "memory"):
        table.add_column(column, justify="right", no_wrap=True)
    for gpu in node["gpus"]:
        readings = readings_now(gpu) or {}
        table.add_row(
            str(gpu["index"]),
            gpu["uuid"].removeprefix("GPU-")[:8],
            f"[{COLOURS.get(gpu['state'], 'white')}]{gpu['state']}[/]",
            gpu.get("replica") or "",
            _share(readings.get("utilization_ratio")),
            _share(readings.get("sm_active_ratio")),
            _figure(readings.get("temperature_c"), "°C"),
            _figure(readings.get("power_w"), "W"),
            _figure(readings.get("memory_used_bytes"), "GiB", 2**30),
        )
    return table


@click.command(help="Show nodes, GPUs, deployments, open incidents and what waits for a person.")
@url_option
@json_option
def command(url: str, as_json: bool) -> int:
    """Print the fleet; exit code 1 when a GPU is lost, failed or held."""
    fleet = ask(url, "GET", "/api/v1/fleet")
    if as_json:
        say(msgspec.json.encode(fleet))
    else:
        show(fleet, Console(highlight=False, soft_wrap=columns() is None))
    states = {gpu["state"] for node in fleet["nodes"] for gpu in node["gpus"]}
    return 0 if states <= {"healthy", "degraded"} and fleet["nodes"] else 1


def show(fleet: dict[str, Any], console: Console) -> None:
    """Print the fleet's tables."""
    for pause in fleet.get("pauses", ()):
        console.print(f"[black on red] PAUSED [/] {escape(pause_words(pause))}")
    for node in fleet["nodes"]:
        _node(node, console)
    for manager in fleet.get("managers", ()):
        if not manager["ok"]:
            console.print(f"[yellow]{manager['name']}[/] does not answer: {escape(manager['why'])}")
    if not fleet["nodes"]:
        console.print("No node has reported yet.")
    for deployment in fleet["deployments"]:
        good = deployment["ready"] >= deployment["wanted"]
        colour = "green" if good else "red" if deployment["ready"] < deployment["min_ready"] else "yellow"
        told = f"{deployment['ready']} of {deployment['wanted']} replicas ready"
        because = f": {escape(deployment['short_because'])}" if deployment.get("short_because") else ""
        console.print(f"[{colour}]●[/] {deployment['name']}: {told}{because}")
    _observed(fleet, console)
    _to_do(fleet, console)


def _node(node: dict[str, Any], console: Console) -> None:
    """A node's GPUs, and what is to be said of it."""
    console.print(_gpus(node))
    if node.get("unknown_because"):
        console.print(f"[yellow]GPUs unknown[/] {escape(node['unknown_because'])}")
    for condition in node.get("conditions", ()):
        console.print(f"[yellow]condition[/] {condition['code']} {condition['severity']} on the node")
        if condition["code"] == OTHERS:
            console.print(f"        Corral waits for: {escape('; '.join(node.get('others', ())))}")
    of_node = {hold["id"]: hold for gpu in node["gpus"] for hold in gpu["holds"] if hold.get("subject", {}).get("node")}
    of_node |= {hold["id"]: hold for hold in node.get("holds", ())}
    held = [("the node", of_node.values()), *((f"GPU {gpu['index']}", gpu["holds"]) for gpu in node["gpus"])]
    for where, holds in held:
        for hold in holds:
            if where != "the node" and hold["id"] in of_node:
                continue  # one hold of all its GPUs
            console.print(f"[magenta]hold[/] {hold['id']} on {where} by {hold['owner']}: {escape(hold['reason'])}")


def pause_words(pause: dict[str, Any]) -> str:
    """Where nothing harmful is done, why, and what ends that."""
    scope, name = pause["scope"], pause["name"]
    where = "everywhere" if scope == "fleet" else f"in pool {name}" if scope == "pool" else f"on {name}"
    option = "" if scope == "fleet" else f" --{scope} {name}"
    end = f"the file on {name} ends it" if scope == "file" else f"end it with: corral resume{option}"
    return f"{where}: {pause['why']}; {end}"


def _to_do(fleet: dict[str, Any], console: Console) -> None:
    """What is wrong, and what of it waits for people."""
    where_is = places(fleet)
    for incident in fleet["incidents_open"]:
        where = _about(incident, where_is, " on ") + _stands(incident, fleet.get("incidents_began", {}))
        console.print(f"[red]incident[/] {incident['id']} {incident['code']} {incident['severity']}{escape(where)}")
        if incident["id"] in fleet.get("halted", {}):
            console.print(f"        goes no further by itself: {escape(fleet['halted'][incident['id']])}")
    for action in fleet.get("repairs_running", ()):
        what = f"{action['of']}{_about(action, where_is)} {action['state']}{_age(action)}: {action['why']}"
        console.print(f"[cyan]repair[/] {action['id']} {escape(what)}")
    for action in fleet["actions_waiting"]:
        if action["of"] == "start_replica":
            continue  # its deployment says above what it waits for now
        what = f"{action['of']}{_about(action, where_is)}: {action['why']}"
        console.print(f"[yellow]waiting[/] {action['id']} {escape(what)}")
        allow = allowed_by(action, fleet)
        if allow is not None:
            console.print(f"        allow it with: {escape(allow)}")
    for action in fleet.get("actions_paused", ()):
        what = f"{action['of']}{_about(action, where_is)}: {action['why']}"
        console.print(f"[yellow]paused[/] {action['id']} {escape(what)}")


def _about(line: dict[str, Any], where_is: dict[str, str], by: str = " of ") -> str:
    """What an action or incident is about, a GPU as NODE/INDEX."""
    name = next((name for name in line.get("subject", {}).values() if name), None)
    return f"{by}{where_is.get(name, name)}" if name else ""


def _stands(incident: dict[str, Any], began: dict[str, float]) -> str:
    """How long an incident is open, and when it last changed if that is another thing."""
    at = incident.get("at")
    start = began.get(incident["id"], at if incident.get("state") != "updated" else None)
    told = "" if start is None else f", for {_ago(start)}"
    if at is None or (start is not None and _ago(at) == _ago(start)):
        return told
    return f"{told}, changed {_ago(at)} ago"


def _age(line: dict[str, Any]) -> str:
    """How long this is so."""
    return "" if line.get("at") is None else f", for {_ago(line['at'])}"


def _ago(at: float) -> str:
    since = max(0.0, time.time() - at)
    unit, name = next((pair for pair in UNITS if since >= 2 * pair[0]), (1, "s"))
    return f"{since / unit:.0f} {name}"


def _indices(fleet: dict[str, Any], replica: dict[str, Any]) -> str:
    """The indices of its GPUs."""
    indices = [str(gpu["index"]) for node in fleet["nodes"] for gpu in node["gpus"] if gpu["uuid"] in replica["gpus"]]
    return f"GPU {', '.join(indices)}"


def _observed(fleet: dict[str, Any], console: Console) -> None:
    """What runs on the GPUs and is not Corral's."""
    for replica in fleet.get("replicas", ()):
        if replica.get("observed"):
            serves = replica.get("serves", True)
            what = f"{replica['state']}: {replica['model']}" if serves else f"works on {_indices(fleet, replica)}"
            told = f"{replica['replica']} {what} by {replica['owner']}"
            console.print(f"[cyan]observed[/] {escape(told)}; Corral never signals it")
