"""What people order. A person is not automation: no level and no pause stops them, floors and budgets do.

What is refused says why: a hold line of op ``refused``, or a note ``refused``. A hold that goes over a limit by force
says which in its ``budget``; no force takes a deployment's drain under its floor.
"""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from controller.core.faults import conditions
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.kinds import STARTED
from controller.core.fleet.names import hold_id
from controller.core.fleet.replicas import Life, Replica
from controller.core.fleet.stimuli import Asked
from controller.core.policy import budget, pause
from controller.core.policy.asked import actions, exists, place, refuse, replicas, words
from controller.core.policy.policy import OWNER
from controller.core.repairs import approval, maintenance, undo, verdicts
from controller.core.repairs.holds import lift
from controller.core.repairs.release import call_off, let_go
from controller.core.replicas import retire
from controller.core.replicas.actions import move
from vocab.events import rfc3339
from vocab.lines import AnyLine, HoldLine, NoteLine, Subject
from vocab.states import REPAIRS, ActionKind, ActionState, ClearsOn

Lines = Iterator[AnyLine]


def answer(fleet: Fleet, asked: Asked, now: float) -> Lines:
    """The lines that an order of a person leads to."""
    deed = DEEDS.get(asked.do)
    if deed is None:
        yield refuse(asked, f"nobody knows how to {asked.do!r}; known: {', '.join(sorted(DEEDS))}", now)
    else:
        yield from deed(fleet, asked, now)


def _hold(fleet: Fleet, asked: Asked, now: float) -> Lines:
    subject = place(asked)
    if subject is None or not exists(fleet, subject):
        yield refuse(asked, "name a GPU or a node that is known", now)
        return
    line = _held(fleet, asked, now)
    if line.id not in fleet.ledger.holds:
        yield _within_limits(fleet, line, asked, now)


def _within_limits(fleet: Fleet, line: HoldLine, asked: Asked, now: float) -> HoldLine:
    """The hold, or that a limit has no room for it; by force it goes over that limit, and says so."""
    gpu = fleet.gpus.get(line.subject.gpu or "")
    node = gpu.node if gpu is not None else line.subject.node or ""
    broken = budget.cordons_of_person(fleet, line.subject, node, now) if line.op == "placed" else None
    if broken is None:
        return line
    if asked.force:
        return replace(line, budget=broken)
    at = budget.room_at(fleet, line.subject, node, now)
    again = f"; there is room again from {rfc3339(at)[:19]}Z on" if at is not None else ""
    why = f"there is no room for it: {budget.words(broken)}{again}; with force (--force) it is held all the same"
    return replace(line, op="refused", reason=why, budget=broken)


def _held(fleet: Fleet, asked: Asked, now: float) -> HoldLine:
    """A person's hold on the place that is named, whether or not it stands."""
    subject = place(asked) or Subject()
    reason = f"{asked.reason} ({asked.by})" if asked.by else asked.reason
    nth = sum(1 for hold in fleet.ledger.lifted.values() if (hold.subject, hold.owner) == (subject, asked.owner))
    line = HoldLine(
        at=now,
        subject=subject,
        id=hold_id(asked.owner, subject, asked.reason, nth),
        op="placed",
        owner=asked.owner,
        reason=reason,
        clears_on=ClearsOn.PERSON,
    )
    if asked.owner == OWNER or asked.owner.startswith("agent:"):
        return replace(line, op="refused", reason=f"{asked.owner} is not a person's name to use")
    return line


def _lift(fleet: Fleet, asked: Asked, now: float) -> Lines:
    if asked.hold is not None:
        found = [hold for hold in [fleet.ledger.holds.get(asked.hold)] if hold is not None]
    else:
        subject = place(asked)
        all_of_it = fleet.ledger.standing(subject) if subject else []
        own = [hold for hold in all_of_it if hold.owner == asked.owner]
        found = own if own and not asked.force else all_of_it
    if not found:
        yield refuse(asked, "no such hold stands", now)
    for hold in found:
        if hold.owner != asked.owner and not asked.force:
            why = f"it belongs to {hold.owner}, not to {asked.owner}: use force (--force) to lift it all the same"
            yield replace(hold, at=now, op="refused", reason=why)
            continue
        yield lift(hold, words(asked, "lifted"), now)
        incident = fleet.ledger.incidents.get(hold.incident or "")
        if hold.owner == OWNER and incident is not None:
            yield from call_off(fleet, incident, words(asked, "lifted"), now)


def _cancel(fleet: Fleet, asked: Asked, now: float) -> Lines:
    one = (ActionKind.START_REPLICA,) if asked.action is not None else ()
    found = actions(fleet, asked, ActionKind.DRAIN, ActionKind.VALIDATE, *REPAIRS, *one)
    if not found:
        yield refuse(asked, "nothing of it is unfinished", now)
    for action in found:
        yield move(action, ActionState.CANCELLED, words(asked, "cancelled"), now)


def _release(fleet: Fleet, asked: Asked, now: float) -> Lines:
    about = place(asked)
    keys = [asked.incident] if asked.incident else list(fleet.ledger.incidents_of.get(about, ())) if about else []
    found = [fleet.ledger.incidents[key] for key in keys if key in fleet.ledger.open_incidents]
    if not found:
        yield refuse(asked, "no open incident is about it; to lift a hold, lift it", now)
    for incident in found:
        yield from let_go(fleet, incident, words(asked, "released"), now)


def _drain(fleet: Fleet, asked: Asked, now: float) -> Lines:
    known = replicas(fleet, asked)
    going = [r for r in known if _is_asked_for(fleet, r)]
    runs = [r for r in known if fleet.life(r) is Life.RUN and r not in going and not (going and _starts(fleet, r))]
    if place(asked) is not None:
        held = list(_hold(fleet, replace(asked, reason=f"drain: {asked.reason}"), now))
        yield from held
        if any(isinstance(line, HoldLine) and line.op == "refused" for line in held):
            return
    elif not runs and not going:
        yield refuse(asked, "no such replica runs", now)
    yield from _send_away(fleet, runs, asked, now)
    if asked.cut_short:
        yield from _cut_short(fleet, known, asked, now)


def _send_away(fleet: Fleet, going: list[Replica], asked: Asked, now: float) -> Lines:
    for replica in going:
        yield retire.ask(fleet, replica, words(asked, "asked for"), now)


def _maintain(fleet: Fleet, asked: Asked, now: float) -> Lines:
    """People will be at work on a node: held, drained, and nothing done there until its time is over.

    Said again, with another time or reason, it is the same maintenance, and has cordoned nothing more.
    """
    if asked.node is None or asked.node not in fleet.nodes:
        yield refuse(asked, "name a node that is known", now)
    elif asked.until is None or asked.until <= now:
        yield refuse(asked, "say until when: a time that is to come", now)
    else:
        said = f"maintenance until {rfc3339(asked.until)[:19]}Z: {asked.reason}"
        known = pause.maintained(fleet, asked.node)
        held = _held(fleet, replace(asked, owner=pause.MAINTENANCE, reason=said), now)
        if known is None:
            line = _within_limits(fleet, held, asked, now)
        else:
            line = replace(known, at=now, reason=held.reason, since=known.stands_since, budget=None)
        if line.op == "refused":
            yield line
            return
        if known is None or (known.until, known.reason) != (asked.until, line.reason):
            yield replace(line, until=asked.until)
        going = (r for r in fleet.roster.at(asked.node) if fleet.life(r) is Life.RUN and not _is_asked_for(fleet, r))
        yield from _send_away(fleet, list(going), asked, now)


def _maintained(fleet: Fleet, asked: Asked, now: float) -> Lines:
    hold = pause.maintained(fleet, asked.node or "")
    if hold is None:
        yield refuse(asked, "no maintenance of it is under way", now)
    else:
        yield from maintenance.end(fleet, hold, words(asked, "maintenance ended"), now)


def _cut_short(fleet: Fleet, going: list[Replica], asked: Asked, now: float) -> Lines:
    """End drains that are under way before their time: what is open then ends with an error, as at the deadline."""
    for replica in going:
        for drain in fleet.ledger.of_subject(replica.subject, ActionKind.DRAIN):
            if drain.state in STARTED:
                yield move(drain, ActionState.TIMED_OUT, words(asked, "cut short"), now)


def _is_asked_for(fleet: Fleet, replica: Replica) -> bool:
    """Whether a drain that a person asked for is unfinished: asked for twice it is still one."""
    drains = fleet.ledger.of_subject(replica.subject, ActionKind.DRAIN)
    return any(d.rule == retire.ASKED and d.state in STARTED | {ActionState.WAITING} for d in drains)


def _starts(fleet: Fleet, replica: Replica) -> bool:
    """Whether it is on its way up, as the replacement of one that drains."""
    start = fleet.ledger.actions.get(replica.start or "")
    return start is not None and start.state in STARTED


def _set_healthy(fleet: Fleet, asked: Asked, now: float) -> Lines:
    """A person says that it is well: its conditions and incidents end, and its history begins anew. Said twice is once.

    If it is not well, its next bad signal opens another condition.
    """
    about = place(asked)
    if about is None or not exists(fleet, about):
        yield refuse(asked, "name a GPU or a node that is known", now)
        return
    said = words(asked, "set healthy")
    for condition in fleet.conditions_on(about):
        yield conditions.end(condition, now)
    for key in list(fleet.ledger.incidents_of.get(about, ())):
        yield from let_go(fleet, fleet.ledger.incidents[key], said, now)
    yield NoteLine(at=now, subject=about, code="set_healthy", text=said)


def _discard_backlog(fleet: Fleet, asked: Asked, now: float) -> Lines:
    """A person has looked: what waits for room is dropped and needs fresh evidence; budgets count anew."""
    waiting = [a for a in fleet.ledger.live(*REPAIRS) if a.state is ActionState.WAITING and a.budget is not None]
    for action in waiting:
        yield move(action, ActionState.EXPIRED, words(asked, "discarded"), now)
    yield NoteLine(at=now, subject=Subject(), code="backlog_discarded", text=words(asked, "discarded"))


DEEDS: dict[str, Callable[[Fleet, Asked, float], Lines]] = {
    "hold": _hold,
    "lift": _lift,
    "pause": pause.pause,
    "resume": pause.resume,
    "approve": approval.approve,
    "cancel": _cancel,
    "release": _release,
    "drain": _drain,
    "set_healthy": _set_healthy,
    "discard_backlog": _discard_backlog,
    "undo": undo.undo,
    "close": verdicts.close,
    "maintain": _maintain,
    "maintained": _maintained,
}
