"""A rehearsal: a fleet's stored past through a core of its own, to see what another policy would have decided.

The events come in as they came, at the times at which they came, on nodes at level repair that run nothing; what went
well by itself then goes well now. Each repair works: it ends what it is for. So the numbers compare policies; they do
not say what became of the fleet. What is played is let go of: a past may be of any length.
"""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from controller.core.core import Core
from controller.core.decided import Tally
from controller.core.fleet.settings import Settings
from controller.core.fleet.stimuli import AnyStimulus, Arrived, NodeReported, Replicas, Shaped
from vocab.events import Cleared, Event, rfc3339
from vocab.lines import ActionLine, AnyLine, ConditionLine
from vocab.messages import ActionItem, ClearedItem, EventItem, NodeFacts
from vocab.observations import GpuIdentity
from vocab.states import REPAIRS, TERMINAL_ACTIONS, ActionKind, ActionState, ClearsOn, Level

BEFORE_S = 60.0  # from the start to the first event: a core that has just started waits for its nodes
AFTER_S = 3600.0  # after the last one: what it leads to is decided within an hour
BY_REPAIR = frozenset({ClearsOn.RESET, ClearsOn.REBOOT})
TAKES_S = {
    ActionKind.RESET_GPU: 60.0,
    ActionKind.REBOOT_NODE: 600.0,
    ActionKind.POWER_CYCLE: 600.0,
    ActionKind.VALIDATE: 60.0,
}
ORDERED = frozenset({ActionState.ORDERED, ActionState.WAITING})


class Told(msgspec.Struct, frozen=True):
    """Something that a node said, and when it came in: an event, or that a signal has returned."""

    at: float
    item: EventItem | ClearedItem


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """Where it plays: a fleet's nodes as they are now, and its division."""

    facts: tuple[NodeFacts, ...]
    shape: Shaped


class Rehearsal:
    """One policy over a past that is told piece by piece, in the order in which it happened."""

    def __init__(self, settings: Settings, scene: Scene) -> None:
        self.tally = Tally()
        self._core = Core(settings)
        self._scene = scene
        self._facts = {facts.node: _at_rest(facts) for facts in scene.facts}
        self._owner = {gpu.uuid: facts.node for facts in self._facts.values() for gpu in facts.gpus}
        self._now: float | None = None  # nothing has been told yet
        self._orders: dict[str, tuple[float, ActionLine]] = {}  # being carried out, and when that ends
        self._done: set[tuple[str, ActionState]] = set()
        self._open: dict[str, ConditionLine] = {}

    def hear(self, told: Told) -> None:
        """What a node said then, after all that was due before."""
        if self._now is None:
            self._begin(told.at - BEFORE_S)
        self._until(told.at)
        self._hear(told.item)

    def end(self) -> None:
        """Nothing more was said: what the last of it leads to."""
        if self._now is not None:
            self._until(self._now + AFTER_S)

    def _begin(self, at: float) -> None:
        self._now = at
        self._core.see(self._scene.shape, at)
        for facts in self._facts.values():
            self._core.see(NodeReported(facts=facts), at)
            self._core.see(Replicas(node=facts.node, statuses=()), at)
        self._take(self._core.tick(at))

    def _hear(self, item: EventItem | ClearedItem) -> None:
        said = item.event if isinstance(item, EventItem) else item.cleared
        if isinstance(said, Event):
            self._know(said)
        self._tell(Arrived(node=said.node, item=item))

    def _know(self, event: Event) -> None:
        """The node as it was then: in the boot of the event, with its GPU, even if that has left since."""
        known = self._facts.get(event.node) or _at_rest(NodeFacts(node=event.node, boot_id=event.boot_id or ""))
        facts = known
        if event.gpu is not None and event.gpu not in {gpu.uuid for gpu in known.gpus}:
            gone = GpuIdentity(uuid=event.gpu, index=len(known.gpus), pci=event.pci or "")
            facts = replace(facts, gpus=(*facts.gpus, gone))
            self._owner.setdefault(event.gpu, event.node)
        if event.boot_id is not None and event.boot_id != facts.boot_id:
            facts = replace(facts, boot_id=event.boot_id)
        if facts != self._facts.get(event.node):
            self._facts[event.node] = facts
            self._report(facts)

    def _report(self, facts: NodeFacts) -> None:
        self._tell(NodeReported(facts=facts))
        self._tell(Replicas(node=facts.node, statuses=()))

    def _until(self, at: float) -> None:
        """Let time pass to ``at``, with all that is due before."""
        while (due := self._first_due()) < at:
            self._pass(due)
        self._pass(at)

    def _first_due(self) -> float:
        due = self._core.next_deadline()
        return min([float("inf") if due is None else due, *(end for end, _ in self._orders.values())])

    def _pass(self, at: float) -> None:
        self._now = max(self._at, at)
        for key in [key for key, (end, _) in self._orders.items() if end <= self._now]:
            _, order = self._orders.pop(key)
            for node, item in self._outcome(order):
                self._tell(Arrived(node=node, item=item))
        self._take(self._core.tick(self._now))

    def _tell(self, stimulus: AnyStimulus) -> None:
        self._take(self._core.take(stimulus, self._at))

    def _take(self, lines: Iterable[AnyLine]) -> None:
        self.tally.add(lines)
        for line in lines:
            if isinstance(line, ConditionLine):
                self._note(line)
            elif isinstance(line, ActionLine) and line.of in TAKES_S:
                self._obey(line)

    def _obey(self, line: ActionLine) -> None:
        """An order is carried out, and what waits for a person is done by one; what was called off is not."""
        if line.state in ORDERED and (line.id, line.state) not in self._done:
            self._done.add((line.id, line.state))
            self._orders[line.id] = (self._at + TAKES_S[line.of], line)
        elif line.state in TERMINAL_ACTIONS:
            self._orders.pop(line.id, None)

    def _note(self, line: ConditionLine) -> None:
        if line.state == "cleared":
            self._open.pop(line.id, None)
        else:
            self._open[line.id] = line

    def _outcome(self, order: ActionLine) -> Iterator[tuple[str, ActionItem | ClearedItem]]:
        """It went well: what it is for is over."""
        node = self._node_of(order)
        if order.state is ActionState.ORDERED:
            yield (
                node,
                ActionItem(at=self._at, node=node, id=order.id, of=order.of, token=order.token, state=ActionState.DONE),
            )
        if order.of in REPAIRS:
            yield from ((node, ClearedItem(cleared)) for cleared in self._ended(order, node))

    def _ended(self, order: ActionLine, node: str) -> list[Cleared]:
        """What the repair ends: the conditions of the GPU, or of the whole node, that a repair ends at all."""
        taken = {gpu.uuid for gpu in self._facts[node].gpus} if order.subject.gpu is None else {order.subject.gpu}
        taken |= {subject.gpu for subject in order.disrupts if subject.gpu is not None}
        whole = order.subject.gpu is None
        mine = [one for one in self._open.values() if one.subject.gpu in taken or (whole and one.subject.node == node)]
        return [
            Cleared(
                at=rfc3339(max(self._at, one.last_at)), node=node, boot_id=None, gpu=one.subject.gpu,
                device=one.device, code=one.code, by="reset", event=one.events[-1],
            )
            for one in mine
            if one.clears_on in BY_REPAIR
        ]  # fmt: skip

    def _node_of(self, order: ActionLine) -> str:
        if order.subject.node is not None:
            return order.subject.node
        return self._owner.get(order.subject.gpu or "", "")

    @property
    def _at(self) -> float:
        """The time of what is played now."""
        assert self._now is not None, "nothing has been told yet"
        return self._now


def _at_rest(facts: NodeFacts) -> NodeFacts:
    """The node without a period: nothing of it is ever too old, for its readings are not of this past."""
    return replace(facts, level=Level.REPAIR, period_s=0.0, booting=False, boot_at=None, unknown_because=None,
                   abilities=None, passed_on=())  # fmt: skip
