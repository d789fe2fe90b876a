"""The parts of a bundle: the story from the store, and what the agents of its nodes keep.

What could not be had is named and fails nothing.
"""

from collections.abc import AsyncIterator, Iterable, Sequence

import msgspec

from controller.deciding.conductor import Conductor
from controller.evidence.records import AgentRecords
from controller.evidence.tar import Part
from controller.notify.notice import subject_name
from controller.store import read
from controller.store.change import Change
from controller.store.store import Store
from vocab.errors import Unreachable
from vocab.events import Event, rfc3339
from vocab.lines import ActionLine, AnyLine, ConditionLine, EventLine, HoldLine, IncidentLine, NoteLine, StateLine
from vocab.messages import EvidenceList, NodeFacts
from vocab.states import ActionKind, ActionState

TAKEN_FOR = (ActionKind.RESET_GPU, ActionKind.REBOOT_NODE, ActionKind.QUARANTINE)  # at these an agent takes evidence
MOST_ORDERS = 4  # of the last of which an agent's evidence is packed
PIECES = ("readings.json", "kernel.log", "nvidia-bug-report.log.gz", "nvidia-bug-report.missing.txt")  # an agent's


class Missing:
    """What a bundle lacks, and of which nodes it could be had later."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.away: dict[str, None] = {}

    def add(self, what: str, away: str | None = None) -> None:
        """This is not there; ``away``: the node that did not give it."""
        self.told.append(what)
        if away is not None:
            self.away[away] = None


class Parts:
    """Gathers parts; nothing is kept here."""

    def __init__(self, conductor: Conductor, store: Store, agents: AgentRecords) -> None:
        self._conductor = conductor
        self._store = store
        self._agents = agents

    async def of(
        self, name: str, changes: Sequence[Change], missing: Missing, take: str | None = None
    ) -> AsyncIterator[Part]:
        """All parts about an incident or a GPU. ``take``: the order for which agents take evidence if they have not."""
        lines = [change.line for change in changes]
        events = list({line.event.id: line.event for line in lines if isinstance(line, EventLine)}.values())
        yield "timeline.jsonl", b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        yield "timeline.txt", "".join(f"{rfc3339(line.at)}  {told(line)}\n" for line in lines).encode()
        raw = "".join(f"{proof.line}\n" for event in events for proof in event.evidence if proof.line)
        if raw:
            yield "kernel.log", raw.encode()
        else:
            missing.add("kernel.log: no event of it has a line of the kernel's log")
        readings = [
            {"event": event.id, "code": event.code, "at": proof.at, "readings": proof.readings}
            for event in events
            for proof in event.evidence
            if proof.readings is not None
        ]
        if readings:
            yield "readings.json", msgspec.json.format(msgspec.json.encode(readings, enc_hook=str))
        else:
            missing.add("readings.json: no event of it was told by readings of a GPU")
        async with self._store.reading() as connection:
            facts = {each.node: each for each in await read.node_facts(connection)}
        for node in sorted(_nodes(name, lines, events, facts.values())):
            async for part in self._of_node(node, facts.get(node), lines, missing, take):
                yield part

    async def _of_node(
        self, node: str, facts: NodeFacts | None, lines: Sequence[AnyLine], missing: Missing, take: str | None
    ) -> AsyncIterator[Part]:
        """Versions and serials of a node, what its GPUs read now, and what its agent keeps."""
        if facts is None:
            missing.add(f"{node}/node.json: the node has never said what it is")
            return
        yield f"{node}/node.json", msgspec.json.format(msgspec.json.encode(facts))
        view = self._conductor.look()
        gpus = [gpu for each in (view.nodes if view is not None else ()) if each.node == node for gpu in each.gpus]
        yield f"{node}/gpus.json", msgspec.json.format(msgspec.json.encode(gpus))
        try:
            yield f"{node}/recording.jsonl", await self._agents.recording(facts.address)
        except Unreachable as error:
            missing.add(f"{node}/recording.jsonl: its agent did not give it: {error}", node)
        orders = _orders(lines)
        if not orders:
            missing.add(f"nvidia-bug-report: none was taken on {node}; run nvidia-bug-report.sh there")
        for order in orders[-MOST_ORDERS:]:
            async for part in self._of_order(node, facts.address, order, missing, take=order == take):
                yield part

    async def _of_order(
        self, node: str, address: str, order: str, missing: Missing, *, take: bool
    ) -> AsyncIterator[Part]:
        place = f"{node}/evidence/{order}"
        try:
            found = await (self._agents.take if take else self._agents.evidence)(address, order)
        except Unreachable as error:
            missing.add(f"{place}: its agent did not give what it took for {order}: {error}", node if take else None)
            return
        for name in _known(found):
            try:
                body = await self._agents.piece(address, order, name)
            except Unreachable as error:
                missing.add(f"{place}/{name}: its agent did not give it: {error}", node)
                continue
            if name == PIECES[-1]:
                missing.add(f"{place}/{PIECES[-2]}: {body.decode(errors='replace').strip()}")
            else:
                yield f"{place}/{name}", body


def _known(found: EvidenceList) -> list[str]:
    """Names of files are ours to choose."""
    return [file.name for file in found.files if file.name in PIECES]


def _orders(lines: Sequence[AnyLine]) -> list[str]:
    """What may have had evidence taken, oldest first: of what only waited there is none."""
    seen = (line for line in lines if isinstance(line, ActionLine) and line.of in TAKEN_FOR)
    begun = {ActionState.ORDERED, ActionState.RUNNING, ActionState.DONE}
    return list(dict.fromkeys(line.id for line in seen if line.state in begun))


def _nodes(name: str, lines: Iterable[AnyLine], events: Iterable[Event], facts: Iterable[NodeFacts]) -> set[str]:
    """The nodes that it is about."""
    homes = {gpu.uuid: each.node for each in facts for gpu in each.gpus}
    found = {event.node for event in events} | {line.subject.node for line in lines if line.subject.node}
    return {node for node in {*found, homes.get(name)} if node}


def told(line: AnyLine) -> str:
    """A line for people."""
    about = subject_name(line.subject)
    match line:
        case EventLine(event=event):
            return f"{about}  saw {event.code} x{event.count} ({event.severity}, {event.recovery}): {event.text}"
        case ConditionLine():
            return f"{about}  condition {line.code} {line.state}"
        case IncidentLine():
            return f"{about}  incident {line.id} {line.state}: {line.closed_because or line.code}"
        case StateLine():
            return f"{about}  is {line.to}: {line.why}"
        case HoldLine():
            return f"{about}  hold {line.op} by {line.owner}: {line.reason}"
        case ActionLine():
            return f"{about}  {line.of.value} {line.state.value}, attempt {line.attempt}: {line.why}"
        case NoteLine():
            return f"{about}  {line.code}: {line.text}"
        case _:
            return about
