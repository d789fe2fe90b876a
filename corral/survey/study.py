"""One node's log through the agent's judge. Runs in a process of its own: a log in, a finding as bytes out."""

import math
from pathlib import Path
from typing import Any

import msgspec

from agent.kernel.parsed import Kind, Parsed
from agent.kernel.stamps import Stamps, zone
from corral.scan.reader import Reader
from corral.survey.logs import Log, oldest_first, written_at
from vocab.errors import InputError
from vocab.events import Event, Severity, epoch_s

MOST_EVENTS = 100_000  # of one log; a storm folds, so more are many nodes in one file


class Card(msgspec.Struct, frozen=True):
    """A GPU as a node's log names it."""

    pci: str
    uuid: str
    serial: str | None = None


class Node(msgspec.Struct):
    """What one log says of one node. ``boots``: when each began, and its name."""

    node: str
    cards: dict[str, Card] = {}
    boots: list[tuple[float | None, str]] = []
    events: list[Event] = []


class Finding(msgspec.Struct):
    """What is in a log."""

    nodes: list[Node] = []
    lines: int = 0
    unparsed: int = 0
    first: float | None = None
    last: float | None = None
    broken: str | None = None
    dropped: int = 0  # events above ``MOST_EVENTS``


def study(log: Log, tz: str | None, now: float) -> bytes:
    """Read a log. What could be read of a broken one is there too."""
    return msgspec.msgpack.encode(_Study(log, Stamps(zone(tz), now, None)).read())


def decoded(raw: bytes) -> Finding:
    """A finding, as another process made it."""
    return msgspec.msgpack.decode(raw, type=Finding)


class _Study:
    def __init__(self, log: Log, stamps: Stamps) -> None:
        self._paths = oldest_first(log.paths, stamps)
        seen = max((written_at(path) for path in self._paths if Path(path).exists()), default=None)
        self._reader = Reader(stamps, parses=True, names_boots=True, node=log.node, at=seen)
        self._found = Finding()
        self._nodes: dict[str, Node] = {}
        self._at: dict[str, str] = {}  # node -> the address that its log named last

    def read(self) -> Finding:
        found = self._found
        try:
            for each in self._reader.read(*self._paths):
                self._take(each)
        except InputError as error:
            found.broken = str(error)
        for name, boots in self._reader.boots.items():
            self._node(name).boots = boots.began
        self._span(self._reader.until)
        if not self._nodes and self._reader.host is not None:
            self._node(self._reader.host)  # nothing is wrong with its GPUs, and they count all the same
        elif not self._nodes and self._reader.lines and found.broken is None:
            found.broken = f"{self._paths[0]}: nothing in it has the form of a kernel log"
        found.nodes = list(self._nodes.values())
        found.lines, found.unparsed = self._reader.lines, self._reader.unparsed
        return found

    def _node(self, name: str) -> Node:
        return self._nodes.get(name) or self._nodes.setdefault(name, Node(name))

    def _take(self, each: Parsed | Event) -> None:
        if isinstance(each, Event):
            self._event(each)
            return
        name, at = self._reader.last
        self._span(at)
        if each.kind is Kind.GPU_AT and each.pci and each.uuid:
            self._at[name] = each.pci
            known = self._node(name).cards.get(each.pci)
            if known is None or known.uuid != each.uuid:
                self._node(name).cards[each.pci] = Card(each.pci, each.uuid)
        elif each.kind is Kind.SERIAL and each.serial and (pci := self._at.get(name)) is not None:
            card = self._node(name).cards[pci]
            self._node(name).cards[pci] = msgspec.structs.replace(card, serial=each.serial)

    def _event(self, event: Event) -> None:
        """Evidence is cut to its first line: a report needs no more, and thousands cross to another process."""
        self._span(epoch_s(event.at) if event.at else None)
        node = self._node(event.node)
        if event.severity is Severity.INFO and not event.injected:
            return
        if len(node.events) >= MOST_EVENTS:
            self._found.dropped += 1
            return
        node.events.append(msgspec.structs.replace(event, evidence=event.evidence[:1]))

    def _span(self, at: float | None) -> None:
        found: Any = self._found
        if at is not None and math.isfinite(at):
            found.first = at if found.first is None else min(found.first, at)
            found.last = at if found.last is None else max(found.last, at)
