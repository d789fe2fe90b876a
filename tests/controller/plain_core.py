"""A Core without a policy: it stores each event, places and lifts the holds that it is told, and no more.

The shell's promises (order, disk before answer, restart, refusal) do not depend on what is decided; this
keeps their tests apart from the decisions. It obeys the same contract as ``controller.core.core.Core``.
"""

from collections.abc import Callable, Iterable

from controller.core.core import Core
from controller.core.fleet.settings import Settings
from controller.core.fleet.stimuli import AnyStimulus, Arrived, Asked, NodeReported, Recalled
from controller.core.fleet.views import GpuView, NodeView, View
from vocab.lines import AnyLine, EventLine, HoldLine, NoteLine, Subject
from vocab.messages import Desired, EventItem, HoldSpec, NodeFacts
from vocab.states import ClearsOn, Level

POISON = "poison"  # an event with this text makes the Core fail


class PlainCore(Core):
    """Facts, events, holds and a pause: what lines and stimuli add up to."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.facts: dict[str, NodeFacts] = {}
        self.revisions: dict[str, int] = {}
        self.holds: dict[str, HoldLine] = {}
        self.paused = False

    def fold(self, line: AnyLine) -> None:
        if isinstance(line, EventLine):
            self.revisions[line.event.id] = line.event.rev
        elif isinstance(line, HoldLine) and line.op == "placed":
            self.holds[line.id] = line
        elif isinstance(line, HoldLine) and line.op == "lifted":
            self.holds.pop(line.id, None)
        elif isinstance(line, NoteLine) and line.code in {"paused", "resumed"}:
            self.paused = line.code == "paused"

    def take(self, stimulus: AnyStimulus, now: float) -> list[AnyLine]:
        lines = self._lines(stimulus, now)
        for line in lines:
            self.fold(line)
        return lines

    def recall(self, told: Iterable[AnyStimulus], now: float) -> list[AnyLine]:
        return [line for stimulus in told for line in self.take(stimulus, now)]

    def see(self, stimulus: AnyStimulus, now: float) -> None:
        self._lines(stimulus, now)

    def _lines(self, stimulus: AnyStimulus, now: float) -> list[AnyLine]:
        match stimulus:
            case Recalled(facts=facts) | NodeReported(facts=facts):
                self.facts[facts.node] = facts
            case Arrived(item=EventItem(event=event)) if event.rev > self.revisions.get(event.id, 0):
                if event.text == POISON:
                    raise ZeroDivisionError(POISON)
                return [EventLine(at=now, subject=Subject(gpu=event.gpu), event=event)]
            case Asked(do="hold"):
                subject = Subject(gpu=stimulus.gpu, node=stimulus.node)
                return [self._hold(f"h-{len(self.holds) + 1}", "placed", stimulus, subject, now)]
            case Asked(do="lift", hold=str(name)):
                held = self.holds[name]
                foreign = held.owner != stimulus.owner and not stimulus.force
                return [self._hold(name, "refused" if foreign else "lifted", stimulus, held.subject, now)]
            case Asked(do="pause" | "resume" as act):
                return [NoteLine(at=now, subject=Subject(), code=f"{act}d", text=stimulus.reason)]
        return []

    def _hold(self, name: str, op: str, asked: Asked, subject: Subject, now: float) -> HoldLine:
        return HoldLine(
            at=now,
            subject=subject,
            id=name,
            op=op,
            owner=asked.owner,
            reason=asked.reason,
            clears_on=ClearsOn.PERSON,
        )

    def draw(self, most: int) -> None:
        pass

    def obey(self, settings: Settings) -> None:
        self.settings = settings

    def tick(self, now: float) -> list[AnyLine]:
        return []

    def next_deadline(self) -> float | None:
        return None

    def desired(self, node: str) -> Desired | None:
        mine = {gpu.uuid for gpu in self.facts[node].gpus}
        holds = tuple(
            HoldSpec(id=hold.id, gpu=hold.subject.gpu, owner=hold.owner, reason=hold.reason)
            for hold in self.holds.values()
            if hold.subject.gpu in mine or hold.subject.node == node
        )
        return Desired(node=node, epoch=0, generation=0, level=Level.OBSERVE, paused=self.paused, holds=holds)

    def silent(self) -> dict[str, str]:
        return {}

    def untold(self) -> None:
        return None

    def inventories(self, told: Iterable[str]) -> None:
        return None

    def lasting(self, facts: NodeFacts) -> NodeFacts:
        return facts

    def view(self) -> View:
        return View(
            paused=self.paused,
            settled=True,
            nodes=tuple(self._node(self.facts[name]) for name in sorted(self.facts)),
            deployments=(),
            replicas=(),
            incidents=(),
            conditions=(),
            holds=tuple(self.holds.values()),
            actions=(),
            counts={"total": 0, "in_service": 0, "free": 0, "unhealthy": 0, "stranded": 0, "overcommitted": 0},
        )

    def _node(self, facts: NodeFacts) -> NodeView:
        return NodeView(
            node=facts.node,
            virtual=facts.virtual,
            level=facts.level.value,
            state="live",
            boot_id=facts.boot_id,
            driver=facts.driver,
            version=facts.version,
            address=facts.address,
            paused=self.paused,
            unknown_because=None,
            seen_at=None,
            gpus=tuple(self._gpu(facts.node, gpu.uuid, gpu.index, gpu.pci) for gpu in facts.gpus),
        )

    def _gpu(self, node: str, uuid: str, index: int, pci: str) -> GpuView:
        holds = tuple(hold for hold in self.holds.values() if hold.subject.gpu == uuid)
        return GpuView(
            uuid=uuid,
            node=node,
            index=index,
            name=None,
            pci=pci,
            state="cordoned" if holds else "healthy",
            health="healthy",
            phase="in_service",
            fresh=True,
            placeable=not holds,
            stranded=False,
            holds=holds,
        )


make_plain: Callable[[Settings], Core] = PlainCore
