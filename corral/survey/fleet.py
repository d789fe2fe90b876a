"""The fleet as its logs and metrics show it: nodes, GPUs, and all that was said, in the order in which it happened."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from corral.survey.report import Gpu
from corral.survey.study import Card, Finding, Node
from vocab.catalogue import codes
from vocab.events import Event, Flag, Scope, epoch_s
from vocab.messages import NodeFacts
from vocab.observations import GpuIdentity
from vocab.states import Level

Said = tuple[float, Event | NodeFacts]
SAME_S = 120.0  # the gauge is collected each 30 s and scraped each 15 s or 60 s after the line


class Board(msgspec.Struct, frozen=True):
    """A GPU as metrics name it."""

    node: str
    uuid: str
    index: int
    board: str | None = None
    pci: str | None = None
    serial: str | None = None


class Fleet:
    """What is known of the fleet. ``boards``: all that metrics name; a node with some of them has no others.

    ``gpus_per_node``: how many any other node is taken to have where nothing shows more. ``began``: when metrics say
    that a node's driver was loaded anew; of a node with a log that log says it.
    """

    def __init__(
        self,
        findings: Iterable[Finding],
        boards: Iterable[Board] = (),
        gpus_per_node: int = 8,
        began: Mapping[str, Iterable[float]] | None = None,
    ) -> None:
        self._began = {} if began is None else began
        self.gpus: dict[str, Gpu] = {}
        self.assumed = 0
        self._expected: dict[str, int] = defaultdict(lambda: gpus_per_node)
        self._by_place: dict[tuple[str, str], str] = {}
        self._of: dict[str, dict[str, None]] = defaultdict(dict)  # node -> its GPUs
        self._nodes: dict[str, list[Node]] = defaultdict(list)
        for board in boards:
            self._know(board.node, board.pci, board.uuid, board.serial, board.board)
            self._expected[board.node] = len(self._of[board.node])
        for finding in findings:
            for node in finding.nodes:
                self._nodes[node.node].append(node)
                for card in node.cards.values():
                    self._learn(node.node, card)
        for name in self._nodes:
            self._of.setdefault(name, {})

    def _learn(self, node: str, card: Card) -> None:
        self._know(node, card.pci, card.uuid, card.serial, None)

    def _know(self, node: str, pci: str | None, uuid: str, serial: str | None, board: str | None) -> None:
        known = self.gpus.get(uuid)
        self.gpus[uuid] = Gpu(
            gpu=uuid,
            node=node,
            pci=pci or (known.pci if known else None),
            serial=serial or (known.serial if known else None),
            board=board or (known.board if known else None),
        )
        self._of[node][uuid] = None
        if pci is not None:
            self._by_place[node, pci] = uuid

    @property
    def nodes(self) -> int:
        """How many there are."""
        return len(self._of)

    def size(self, node: str) -> int:
        """The GPUs of a node, with those that nothing names."""
        return max(len(self._of.get(node, ())), self._expected[node])

    def boards(self) -> dict[str | None, int]:
        """How many cards there are of each board; those that nothing names are of no known one."""
        found: dict[str | None, int] = defaultdict(int)
        for gpu in self.gpus.values():
            found[gpu.board] += 1
        found[None] += self.assumed
        return found

    def facts(self) -> tuple[NodeFacts, ...]:
        """Every node in its first boot, idle, with its GPUs; those that nothing names are there for the budgets."""
        list(self._events())  # GPUs that only events name
        made = []
        self.assumed = 0
        for name in sorted(self._of):
            known = list(self._of[name])
            unnamed = [f"{name}/unnamed-{number}" for number in range(len(known), self._expected[name])]
            self.assumed += len(unnamed)
            boots = self._boots(name)
            made.append(self._facts(name, boots[0][1] if boots else "", [*known, *unnamed]))
        return tuple(made)

    def _facts(self, node: str, boot: str, gpus: list[str]) -> NodeFacts:
        identities = tuple(
            GpuIdentity(uuid=uuid, index=index, pci=(self.gpus[uuid].pci or "") if uuid in self.gpus else "")
            for index, uuid in enumerate(gpus)
        )
        return NodeFacts(node=node, boot_id=boot, gpus=identities, level=Level.REPAIR, period_s=0.0)

    def said(self, xids: Iterable[Event] = ()) -> list[Said]:
        """Events and boots, in order. ``xids``: what metrics tell of, and counts where the logs do not tell of it."""
        first = {facts.node: facts for facts in self.facts()}
        logged = list(self._events())
        events = [*logged, *self._unlogged(xids, logged)]
        found: list[tuple[float, int, Event | NodeFacts]] = [(at, 1, event) for at, event in events]
        for name, facts in first.items():
            found += [(at, 0, replace(facts, boot_id=boot)) for at, boot in self._boots(name)[1:] if at is not None]
        return [(at, said) for at, _, said in sorted(found, key=lambda each: each[:2])]

    def boots(self) -> dict[str, list[float]]:
        """By node, when it booted while its log was kept, in order."""
        return {name: [at for at, _ in self._boots(name)[1:] if at is not None] for name in self._of}

    def _unlogged(self, xids: Iterable[Event], logged: Iterable[tuple[float, Event]]) -> Iterator[tuple[float, Event]]:
        known: dict[tuple[str | None, str], list[float]] = defaultdict(list)
        for at, event in logged:
            known[event.gpu, event.code].append(at)
        for event in xids:
            at = epoch_s(event.at or "")
            if not any(abs(at - before) <= SAME_S for before in known[event.gpu, event.code]):
                yield at, replace(event, boot_id=self._boot_at(event.node, at))

    def _boot_at(self, name: str, at: float) -> str | None:
        """In which boot a node was then."""
        boots = [boot for began, boot in self._boots(name) if began is None or began <= at]
        return boots[-1] if boots else None

    def _boots(self, name: str) -> list[tuple[float | None, str]]:
        found = [boot for node in self._nodes.get(name, ()) for boot in node.boots]
        if name not in self._nodes:
            found = [(None, f"{name}, before"), *((at, f"{name}, from {at:.0f}") for at in self._began.get(name, ()))]
        return sorted(found, key=lambda boot: (boot[0] is not None, boot[0] or 0.0))

    def _events(self) -> Iterator[tuple[float, Event]]:
        known: set[str] = set()
        for name in sorted(self._nodes):
            for node in self._nodes[name]:
                for event in node.events:
                    if event.at is None or event.id in known:
                        continue
                    known.add(event.id)
                    yield epoch_s(event.at), self._placed(event)

    def _placed(self, event: Event) -> Event:
        """The event as it came, with its GPU: where the log names only an address, that stands for one."""
        event = replace(event, rev=1, last_at=event.at)
        if event.gpu is not None or event.pci is None or codes.row(event.code).scope is not Scope.GPU:
            if event.gpu is not None and event.gpu not in self.gpus:
                self._know(event.node, event.pci, event.gpu, None, None)
            return event
        uuid = self._by_place.get((event.node, event.pci))
        if uuid is None:
            uuid = f"{event.node}/{event.pci}"
            self._know(event.node, event.pci, uuid, None, None)
        flags = tuple(flag for flag in event.flags if flag is not Flag.LOOKUP_FAILED)
        return replace(event, gpu=uuid, flags=flags, scope=Scope.GPU)
