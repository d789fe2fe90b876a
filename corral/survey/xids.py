"""Xids by dcgm-exporter's gauge, which holds the last one for ever: where it changes, there was one.

What a gauge cannot show: the same Xid twice in a row, all but the last of those between two scrapes, and what stands
there at first, of which nobody knows when it was. Pure.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from agent.judge import Judge
from agent.probes.pushed import AWAIT_S, HIGHEST
from corral.survey.fleet import Board
from vocab.events import Event, Severity
from vocab.messages import EventItem
from vocab.observations import DriverEvent, GpuIdentity, NodeSeen

Point = tuple[float, float]  # seconds since the epoch, and the gauge
Found = tuple[float, int]  # when, and which


def xids(points: Iterable[Point], seen_from: float) -> Iterator[Found]:
    """Where the gauge of one GPU changes to an Xid, or begins with one though other gauges of it were there before.

    ``seen_from``: since when these are, and the gauge was not.
    """
    before: int | None = None
    for at, value in sorted(set(points)):
        if not 0 <= value <= HIGHEST:  # NaN, or a blank of DCGM's: nothing was read
            continue
        number = int(value)
        if number > 0 and number != before and (before is not None or seen_from < at):
            yield at, number
        before = number


def judged(boards: Mapping[str, Board], found: Mapping[str, Sequence[Found]]) -> list[Event]:
    """What these Xids mean, by the agent's judge: by GPU, in the order of time. Information is left out."""
    by_node: dict[str, list[tuple[float, int, str]]] = defaultdict(list)
    for uuid, of_gpu in found.items():
        by_node[boards[uuid].node] += [(at, number, uuid) for at, number in of_gpu]
    return [event for node, told in sorted(by_node.items()) for event in _of_node(node, boards, sorted(told))]


def _of_node(node: str, boards: Mapping[str, Board], told: Sequence[tuple[float, int, str]]) -> Iterator[Event]:
    known = [boards[uuid] for uuid in dict.fromkeys(uuid for _, _, uuid in told)]
    gpus = tuple(GpuIdentity(uuid=b.uuid, index=b.index, pci=b.pci or "", serial=b.serial or "") for b in known)
    begun = told[0][0]
    judge = Judge(node)
    items = judge.observe(NodeSeen(at=begun, node=node, boot_id="", driver="", gpus=gpus), begun)
    for at, number, uuid in told:
        while (due := judge.next_deadline()) is not None and due <= at:
            items += judge.tick(due)
        seen = DriverEvent(at=at, node=node, source="exporter", gpu=uuid, type="xid", data=number)
        items += judge.observe(seen, at)
    last: dict[str, Event] = {}
    for item in [*items, *judge.close(told[-1][0] + AWAIT_S)]:
        if isinstance(item, EventItem) and item.event.code.startswith("xid:"):
            last[item.event.id] = replace(item.event, boot_id=None)
    return iter([event for event in last.values() if event.severity is not Severity.INFO])


def boots(boards: Mapping[str, Board], reloads: Mapping[str, Iterable[float]], step: float) -> dict[str, list[float]]:
    """When the driver of each node was loaded anew: the energy of half of its GPUs, counted since then, fell.

    ``reloads``: by GPU, the moments, ``step`` seconds apart, at which it was lower than an hour before.
    """
    size: dict[str, int] = defaultdict(int)
    fell: dict[str, dict[float, int]] = defaultdict(lambda: defaultdict(int))
    for uuid, board in boards.items():
        size[board.node] += 1
        for at in reloads.get(uuid, ()):
            fell[board.node][at] += 1
    found = {}
    for node, moments in fell.items():
        many = [at for at in sorted(moments) if 2 * moments[at] >= size[node]]
        found[node] = [at for at, before in zip(many, [-math.inf, *many], strict=False) if at - before > 1.5 * step]
    return {node: began for node, began in found.items() if began}
