"""What a frame shows, from the controller's fleet or from a node's agent. Pure: answers in, rows out."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from corral.words import readings_now
from vocab.activity import Activity, Doing, activity
from vocab.events import Event
from vocab.readings import Readings

SOUND = frozenset({"healthy", "serving"})
HIDDEN = frozenset({Doing.HUNG, Doing.THROTTLED, Doing.LAUNCH_BOUND})


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU: its state, what it really does, and the figures beside which utilization is to be read."""

    node: str
    index: int
    state: str
    doing: Activity | None
    readings: Readings
    replica: str = ""

    @property
    def worry(self) -> tuple[int, int, str, int]:
        """Rows in the order in which they deserve a look: unwell, busy for nothing, then by place."""
        hidden = self.doing is not None and self.doing.doing in HIDDEN
        return (self.state in SOUND, not hidden, self.node, self.index)


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of one frame. ``words``: what stands above all else, such as a pause."""

    source: str
    rows: tuple[Row, ...]
    replicas: tuple[str, ...]
    words: tuple[str, ...]
    events: tuple[Event, ...]


def of_fleet(fleet: Mapping[str, Any], events: Sequence[Event], url: str) -> Scene:
    """By the controller."""
    loads = {each["replica"]: each for each in fleet["replicas"]}
    rows = [
        _row(node["node"], gpu["index"], gpu["state"], readings_now(gpu), gpu.get("replica") or "")
        for node in fleet["nodes"]
        for gpu in node["gpus"]
    ]
    words = [f"PAUSED {pause['scope']} {pause.get('name') or ''}: {pause['why']}" for pause in fleet.get("pauses", ())]
    opened, waits = len(fleet["incidents_open"]), len(fleet["actions_waiting"])
    told = f"{opened} incident{'' if opened == 1 else 's'} open, {waits} action{' waits' if waits == 1 else 's wait'}"
    words += [told] if opened else []
    return Scene(
        source=f"{url}  {len(fleet['nodes'])} node{'' if len(fleet['nodes']) == 1 else 's'}",
        rows=tuple(rows),
        replicas=tuple(map(_load, loads.values())),
        words=tuple(words),
        events=tuple(events),
    )


def of_node(node: Mapping[str, Any], events: Sequence[Event]) -> Scene:
    """By a node's own agent."""
    placed = {m["gpu"]: each["replica"] for each in node["replicas"] for m in each.get("members", ())}
    rows = [
        _row(node["node"], gpu["index"], _state(gpu), (gpu.get("sample") or {}).get("readings"),
             placed.get(gpu["gpu"], ""))
        for gpu in node["gpus"]
    ]  # fmt: skip
    words = [] if node["controller"]["up"] else [f"controller {node['controller']['url']} does not answer"]
    words += ["PAUSED on this node"] if node["paused"] else []
    down = [f"{each['source']} {each['state']}" for each in node["sources"] if each["state"] != "up"]
    return Scene(
        source=f"{node['node']}, by its agent",
        rows=tuple(rows),
        replicas=tuple(map(_load, node["replicas"])),
        words=(*words, *down),
        events=tuple(events),
    )


def _state(gpu: Mapping[str, Any]) -> str:
    if gpu["fenced"]:
        return "fenced"
    sample = gpu.get("sample")
    return "unknown" if not sample else "unreadable" if sample.get("error") else "serving"


def _row(node: str, index: int, state: str, raw: Any, replica: str) -> Row:
    readings = msgspec.convert(raw, Readings) if raw else Readings()
    return Row(node=node, index=index, state=state, doing=activity(readings), readings=readings, replica=replica)


def _load(replica: Mapping[str, Any]) -> str:
    state = replica.get("state") or replica.get("phase", "starting")
    kv = replica.get("kv_ratio")
    cache = "" if kv is None else f", cache {kv:.0%}"
    load = f"{replica.get('running', 0)} running, {replica.get('waiting', 0)} waiting{cache}"
    return f"{replica['replica']} {state}: {load}"


def worst_first(rows: Iterable[Row]) -> list[Row]:
    """The rows in the order in which they deserve a look."""
    return sorted(rows, key=lambda row: row.worry)
