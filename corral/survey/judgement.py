"""What the past asks for, by the same core that a controller has: as it was, and as Corral would have had it.

As it was: nothing is done but what the logs show, a boot. A fault that asks for its GPU (or node) to be taken out of
service stands from its event until the node boots again; a reset of one GPU leaves no line in a kernel log, so a fault
that was reset away is still counted as standing. As it would have been: at level repair, where each repair works.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from controller.core.fleet import lemons as judged
from controller.core.fleet.settings import Settings
from controller.core.fleet.stimuli import Shaped
from controller.core.rehearsal import Scene
from corral.survey.fleet import Fleet, Said
from corral.survey.imagined import Imagined, Kept
from corral.survey.report import Cost, Fault, Gpu, Lemon, Missed, Standing
from vocab.catalogue import codes
from vocab.events import Event, Recovery, Severity
from vocab.lines import ActionLine, HoldLine, IncidentLine, Subject
from vocab.messages import NodeFacts
from vocab.states import REPAIRS, ActionKind, ActionState, Level

MISSED_S = 3600.0  # a fault that stood for longer was missed: whoever watches acts within the hour
DAY_S = 86_400
FAULTS = frozenset(  # what only a fault of the card asks for
    code for code, row in codes.ROWS.items() if row.recovery.rank >= Recovery.DRAIN_AND_RESET.rank and code != "lemon"
)
DECIDED = frozenset({ActionState.ORDERED, ActionState.WAITING, ActionState.DONE})


class Due(msgspec.Struct):
    """A fault that asked for a hold: what it is of, since when, and until when it stood (None: it stands)."""

    hold: HoldLine
    until: float | None = None
    repeats: int = 0


def imagine(level: Level, facts: tuple[NodeFacts, ...], said: list[Said]) -> list[Kept]:
    """What the core decides at most at this level."""
    settings = Settings(level=level)
    return Imagined(settings, Scene(facts=facts, shape=Shaped())).play(said).kept


class Judgement:
    """``real``: what the core says while nothing is done; ``repaired``: at level repair. ``end``: of the logs.

    ``now``: what stands at their end stands until then: a kernel log that is quiet after a fault takes none of it back.
    """

    def __init__(
        self,
        fleet: Fleet,
        said: Sequence[Said],
        real: Iterable[Kept],
        repaired: Iterable[Kept],
        end: float,
        now: float,
    ) -> None:
        self._fleet = fleet
        self._events = [(at, event) for at, event in said if isinstance(event, Event) and not event.injected]
        self._by_id = {event.id: (at, event) for at, event in self._events}
        self._repaired = list(repaired)
        self._end = end
        self._now = max(end, now)
        self._incidents: dict[str, IncidentLine] = {}
        self._due = self._dues(real)

    # -- as it was --------------------------------------------------------------------------------------

    def _dues(self, real: Iterable[Kept]) -> list[Due]:
        due: dict[str, Due] = {}
        for line in real:
            if isinstance(line, HoldLine) and line.op == "would_place":
                due.setdefault(line.id, Due(line))
            elif isinstance(line, IncidentLine):
                self._incidents[line.id] = line
                for each in due.values() if line.state == "closed" else ():
                    if each.hold.incident == line.id and each.until is None:
                        each.until = line.at
        for each in due.values():
            incident = self._incidents.get(each.hold.incident or "")
            each.repeats = sum(
                self._by_id[key][1].count for key in (incident.events if incident else ()) if key in self._by_id
            )
        return list(due.values())

    def standing(self) -> tuple[Standing, ...]:
        """What should be out of service now, the longest first; of one GPU its first fault."""
        found: dict[Subject, Standing] = {}
        for due in sorted(self._due, key=lambda each: each.hold.at):
            if due.until is None and due.hold.subject not in found:
                code, event = self._fault(due)
                found[due.hold.subject] = Standing(
                    node=self._node(due), gpu=self._gpu(due), code=code, title=codes.row(code).title,
                    recovery=self._recovery(due), since=due.hold.at, events=due.repeats,
                    line=next((proof.line for proof in event.evidence if proof.line), "") if event else "",
                )  # fmt: skip
        return tuple(found.values())

    def missed(self) -> tuple[Missed, ...]:
        """The faults that stood for longer than an hour, the longest first."""
        boots = self._fleet.boots()
        found = []
        for due in self._due:
            until = self._now if due.until is None else due.until
            if until - due.hold.at < MISSED_S:
                continue
            node = self._node(due)
            code, _ = self._fault(due)
            booted = bisect_right(boots.get(node, []), until) > bisect_right(boots.get(node, []), due.hold.at)
            found.append(
                Missed(
                    node=node,
                    gpu=self._gpu(due),
                    code=code,
                    title=codes.row(code).title,
                    recovery=self._recovery(due),
                    since=due.hold.at,
                    stood_s=until - due.hold.at,
                    ended_by=None if due.until is None else "a boot" if booted else "itself",
                    repeats=due.repeats,
                )
            )
        return tuple(sorted(found, key=lambda each: (-each.stood_s, each.node, each.code)))

    def _fault(self, due: Due) -> tuple[str, Event | None]:
        incident = self._incidents.get(due.hold.incident or "")
        code = due.hold.rule or (incident.code if incident else "")
        found = self._by_id.get(incident.root) if incident else None
        return code, found[1] if found else None

    def _recovery(self, due: Due) -> str:
        incident = self._incidents.get(due.hold.incident or "")
        return incident.recovery.value if incident else ""

    def _gpu(self, due: Due) -> Gpu | None:
        return self._fleet.gpus.get(due.hold.subject.gpu or "")

    def _node(self, due: Due) -> str:
        gpu = self._gpu(due)
        return due.hold.subject.node or (gpu.node if gpu else "")

    # -- as it would have been --------------------------------------------------------------------------

    def cost(self, gpus: int, since: float) -> Cost:
        """What Corral would have held and repaired, and what that takes."""
        begun: dict[str, HoldLine] = {}
        spans: list[tuple[float, float, int]] = []
        waited: set[str] = set()
        repairs: dict[str, ActionLine] = {}
        for line in self._repaired:
            if isinstance(line, ActionLine):
                if line.of in {*REPAIRS, ActionKind.QUARANTINE} and line.state in DECIDED:
                    repairs.setdefault(line.id, line)
            elif isinstance(line, HoldLine) and line.op == "placed":
                begun.setdefault(line.id, line)
            elif isinstance(line, HoldLine) and line.op == "would_place" and line.budget is not None:
                waited.add(line.id)
            elif isinstance(line, HoldLine) and line.op == "lifted" and (hold := begun.get(line.id)) is not None:
                spans.append((hold.at, min(line.at, self._end), self._size(hold.subject)))
        ended = {line.id for line in self._repaired if isinstance(line, HoldLine) and line.op == "lifted"}
        spans += [(hold.at, self._end, self._size(hold.subject)) for key, hold in begun.items() if key not in ended]
        counted = Counter(line.of.value for line in repairs.values())
        quarantined = counted.pop(ActionKind.QUARANTINE.value, 0)
        return Cost(
            holds=len(begun),
            waited=len(waited),
            repairs=dict(sorted(counted.items())),
            held_gpu_s=sum(max(0.0, end - start) * size for start, end, size in spans),
            fleet_gpu_s=gpus * max(0.0, self._end - since),
            most_at_once=_most(spans),
            served_faulty_s=sum(
                max(0.0, (self._end if due.until is None else due.until) - due.hold.at) * self._size(due.hold.subject)
                for due in self._due
            ),
            rules=dict(Counter(hold.rule or "" for hold in begun.values()).most_common()),
            quarantined=quarantined,
        )

    def _size(self, subject: Subject) -> int:
        return 1 if subject.gpu is not None else max(1, self._fleet.size(subject.node or ""))

    # -- cards ------------------------------------------------------------------------------------------

    def lemons(self) -> tuple[Lemon, ...]:
        """The cards that stand out, by serial number where it is known: a card takes its history along."""
        since = self._end - judged.WINDOW_S
        tallies: Counter[tuple[str, int, str, str]] = Counter()
        cards: dict[str, Gpu] = {}

        def add(uuid: str | None, at: float, measure: str, name: str) -> None:
            gpu = self._fleet.gpus.get(uuid or "")
            if gpu is not None and at >= since:
                key = gpu.serial or gpu.gpu
                cards[key] = gpu
                tallies[key, int(at // DAY_S) * DAY_S, measure, name] += 1

        for at, event in self._events:
            if event.cause is None:
                add(event.gpu, at, "fault", event.code)
        held: set[str] = set()
        for line in self._repaired:
            if isinstance(line, HoldLine) and line.op == "placed" and line.id not in held:
                held.add(line.id)
                add(line.subject.gpu, line.at, "hold", line.rule or "")
            elif isinstance(line, ActionLine) and line.of in REPAIRS and line.state is ActionState.ORDERED:
                add(line.subject.gpu, line.at, "repair", line.of.value)
        rows = [judged.Tally(card, day, measure, name, count) for (card, day, measure, name), count in tallies.items()]
        boards = {key: gpu.board for key, gpu in cards.items()}
        found = judged.lemons(judged.signals(rows, FAULTS), boards, self._fleet.boards())
        return tuple(
            Lemon(gpu=cards[each.gpu], score=each.score, lemon=each.lemon, signals=tuple(s.text for s in each.signals))
            for each in found
        )

    def faults(self) -> tuple[Fault, ...]:
        """What was seen, the gravest and most frequent first."""
        by: dict[str, list[Event]] = defaultdict(list)
        for _, event in self._events:
            by[event.code].append(event)
        asked = {due.hold.rule for due in self._due}
        return tuple(sorted((_fault(code, events, asks=code in asked) for code, events in by.items()), key=_gravity))


def _fault(code: str, events: list[Event], *, asks: bool) -> Fault:
    worst = max(events, key=lambda event: (event.severity.rank, event.recovery.rank))
    return Fault(
        code=code,
        title=codes.row(code).title,
        severity=worst.severity.value,
        recovery=worst.recovery.value,
        events=len(events),
        lines=sum(event.count for event in events),
        gpus=len({event.gpu for event in events if event.gpu}),
        nodes=len({event.node for event in events}),
        asks=asks,
    )


def _gravity(fault: Fault) -> tuple[bool, int, int, str]:
    return (not fault.asks, -Severity(fault.severity).rank, -fault.events, fault.code)


def _most(spans: Iterable[tuple[float, float, int]]) -> int:
    """The most GPUs that are held at one time."""
    moves = sorted((at, size) for start, end, n in spans for at, size in ((start, n), (end, -n)))
    most = now = 0
    for _, size in moves:
        now += size
        most = max(most, now)
    return most
