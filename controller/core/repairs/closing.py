"""Closing at the manager: what is held here takes no new work there, in Slurm's or Kubernetes' own books.

    a hold stands   drain    would, waiting (budget, somebody else at work) -> ordered -> running: closed -> done: empty
    it has gone     release  ordered -> done: open again

The place is what the manager can close, a GPU or a whole node: then eight GPUs leave for one, are named and are
charged. An order stands until its adapter has seen it done, however long the manager is away. Only what our mark
stands on is opened again; a mark that a person took away ends our hold, or is set again, as configured.
"""

from collections.abc import Iterator

import msgspec

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.ledger import MANAGER
from controller.core.fleet.names import action_id
from controller.core.fleet.stimuli import Managed
from controller.core.policy import budget
from controller.core.policy.policy import OWNER, Leave, may_act
from controller.core.repairs.disruption import disrupted
from controller.core.repairs.holds import is_fence, lift
from controller.core.repairs.release import call_off
from controller.core.replicas.actions import draw, move, placed_anew
from vocab.lines import ActionLine, AnyLine, Budget, HoldLine, NoteLine, Subject
from vocab.states import TERMINAL_ACTIONS, ActionKind, ActionState

MOST_TURNS = 3  # closings of one place under the same holds: more would be a fight with whoever opens it again
_ASKED = frozenset({ActionState.WOULD, ActionState.WAITING})
_STANDS = frozenset({ActionState.RUNNING, ActionState.DONE})


class Place(msgspec.Struct, frozen=True):
    """What a manager closes: a GPU or a node of ``node``. ``name`` is its name in ``Managed.ours``."""

    by: str
    node: str
    subject: Subject

    @property
    def name(self) -> str:
        """The UUID of the GPU, or the node."""
        return self.subject.gpu or self.node

    @property
    def rule(self) -> str:
        """The rule under which it is closed and opened."""
        return f"{MANAGER}{self.by}"


class Decision(msgspec.Struct, frozen=True):
    """The state that a closing is in, and why."""

    state: ActionState
    why: str
    budget: Budget | None = None


def converge(fleet: Fleet, now: float) -> Iterator[AnyLine]:
    """Close what is held, and open what is not."""
    if not fleet.managers.known:
        return
    wanted = _wanted(fleet)
    for place, holds in wanted.items():
        yield from _close(fleet, place, holds, now)
    for (by, subject), key in list(fleet.ledger.closings.items()):
        place = _place(fleet, by, subject)
        if place not in wanted and not is_held(fleet, place):
            yield from _open(fleet, place, fleet.ledger.actions[key], now)


def _wanted(fleet: Fleet) -> dict[Place, list[HoldLine]]:
    """The places that holds keep out of work, each with its holds, oldest first. A fence waits for its confirmation."""
    found: dict[Place, list[HoldLine]] = {}
    for hold in fleet.ledger.holds.values():
        gpu = fleet.gpus.get(hold.subject.gpu or "")
        node = gpu.node if gpu is not None else hold.subject.node
        for managed in fleet.managers.of(node) if node is not None and not is_fence(hold) else ():
            for subject in _subjects(fleet, managed, hold):
                found.setdefault(Place(managed.by, managed.node, subject), []).append(hold)
    return found


def _subjects(fleet: Fleet, managed: Managed, hold: HoldLine) -> list[Subject]:
    if managed.grain == "node":
        return [Subject(node=managed.node)]
    if managed.grain == "gpu" and hold.subject.gpu is None:
        return [Subject(gpu=gpu.identity.uuid) for gpu in fleet.gpus_at(managed.node) if gpu.listed]
    return [hold.subject] if managed.grain == "gpu" else []


def _place(fleet: Fleet, by: str, subject: Subject) -> Place:
    gpu = fleet.gpus.get(subject.gpu or "")
    return Place(by, gpu.node if gpu is not None else subject.node or "", subject)


def is_held(fleet: Fleet, place: Place) -> bool:
    """Whether a hold stands there; also while its manager has not said yet what it can close."""
    if place.subject.gpu is not None:
        return any(not is_fence(hold) for hold in fleet.holds_on(place.subject.gpu))
    gpus = [gpu.identity.uuid for gpu in fleet.gpus_at(place.node)]
    holds = fleet.ledger.standing(place.subject) + [h for gpu in gpus for h in fleet.ledger.standing(Subject(gpu=gpu))]
    return any(not is_fence(hold) for hold in holds)


# -- closing ----------------------------------------------------------------------------------------------


def _close(fleet: Fleet, place: Place, holds: list[HoldLine], now: float) -> Iterator[AnyLine]:
    managed = fleet.managers.on(place.node, place.by)
    drains = _drains(fleet, place)
    last = drains[-1] if drains else None
    key = fleet.ledger.closings.get((place.by, place.subject))
    asked = fleet.ledger.actions[key] if key is not None else None
    if managed is None or _is_spared(last, holds):
        if managed is not None and last is not None and asked is last:
            yield from _open(fleet, place, last, now)  # a person has called it off
    elif asked is None or asked.of is ActionKind.RELEASE:
        if asked is not None and asked.state not in TERMINAL_ACTIONS:
            yield move(asked, ActionState.CANCELLED, "it is held again", now)
        yield from _draw(fleet, place, holds, len(drains), None, now)
    elif asked.state in _ASKED:
        yield from _draw(fleet, place, holds, len(drains) - 1, asked, now)
    elif place.name in managed.ours:
        yield from _follow(asked, managed, now)
    elif asked.state in _STANDS and fleet.managers.answers(place.by):
        yield from _when_gone(fleet, place, holds, asked, managed, now)


def _is_spared(last: ActionLine | None, holds: list[HoldLine]) -> bool:
    """Whether it was called off, or refused, under the very holds that stand."""
    if last is None or last.state not in {ActionState.CANCELLED, ActionState.REFUSED, ActionState.FAILED}:
        return False
    return all(hold.at < last.at for hold in holds)


def _draw(
    fleet: Fleet, place: Place, holds: list[HoldLine], nth: int, known: ActionLine | None, now: float, why: str = ""
) -> Iterator[AnyLine]:
    """The order to close it, or what it waits for."""
    decision = _decide(fleet, place, holds, why, now)
    if decision is None:
        return
    gpus = [gpu.identity.uuid for gpu in fleet.gpus_at(place.node)] if place.subject.gpu is None else []
    held = {hold.subject.gpu for hold in holds}
    drawn = draw(
        fleet,
        now,
        ActionKind.DRAIN,
        known.id if known is not None else action_id(ActionKind.DRAIN, place.rule, place.name, nth),
        place.subject,
        state=decision.state,
        incident=next((hold.incident for hold in holds if hold.incident is not None), None),
        rule=place.rule,
        attempt=nth + 1,
        budget=decision.budget,
        disrupts=disrupted(fleet, [gpu for gpu in gpus if gpu not in held]),
        why=decision.why,
    )
    line = placed_anew(fleet, drawn)
    if line is not None:
        yield line


def _decide(fleet: Fleet, place: Place, holds: list[HoldLine], why: str, now: float) -> Decision | None:
    """What holds the closing back, first match; None: too early to say."""
    incident = next((fleet.ledger.incidents.get(hold.incident or "") for hold in holds if hold.incident), None)
    verdict = may_act(fleet, place.node, ActionKind.DRAIN, now, incident)
    if verdict.leave is Leave.LATER:
        return None
    if verdict.leave is Leave.WOULD:
        return Decision(ActionState.WOULD, verdict.why)
    managed = fleet.managers.on(place.node, place.by)
    if managed is not None and managed.other:
        return Decision(ActionState.WAITING, f"{place.node} is left alone: {managed.other}")
    broken = budget.closings(fleet, place.by, place.subject)
    if broken is not None:
        return Decision(ActionState.WAITING, f"too much of {place.by} is closed already", broken)
    count = len(fleet.gpus_at(place.node))
    takes = "this GPU" if place.subject.gpu is not None else f"{place.node} with all of its {count} GPUs"
    return Decision(ActionState.ORDERED, why or f"{place.by} keeps new work off {takes}: {holds[0].reason}")


def _follow(asked: ActionLine, managed: Managed, now: float) -> Iterator[ActionLine]:
    """Its mark stands: it is empty once nothing runs there.

    That an order was carried out is told, not concluded: what was heard of the place may be older than the order.
    """
    if asked.state is ActionState.RUNNING and managed.busy is False:
        yield move(asked, ActionState.DONE, f"{managed.by} has closed it, and nothing of it runs there", now)


def _when_gone(
    fleet: Fleet, place: Place, holds: list[HoldLine], asked: ActionLine, managed: Managed, now: float
) -> Iterator[AnyLine]:
    """Our mark is gone: forgotten by a manager that was restarted, overwritten by others, or taken away by a person."""
    said = list(_instead(fleet, place, holds, asked, managed, now))
    if said and asked.state is not ActionState.DONE:
        yield move(asked, ActionState.FAILED, f"its mark no longer stands in {place.by}", now)
    yield from said


def _instead(
    fleet: Fleet, place: Place, holds: list[HoldLine], asked: ActionLine, managed: Managed, now: float
) -> Iterator[AnyLine]:
    drains = _drains(fleet, place)
    if managed.began_at > max(asked.at, fleet.managers.marked_at(place.by, place.name)):
        why = f"{place.by} was restarted and has forgotten it"
        yield from _draw(fleet, place, holds, len(drains), None, now, why)
    elif managed.other:
        yield from _draw(fleet, place, holds, len(drains), None, now)
    elif fleet.managers.known[place.by].resume_lifts:
        yield from _give_in(fleet, place, holds, asked, now)
    elif sum(drain.at >= holds[0].at for drain in drains) < MOST_TURNS:
        why = f"somebody opened it in {place.by}, but a hold stands: {holds[0].reason}; lift that first"
        yield from _draw(fleet, place, holds, len(drains), None, now, why)
    else:
        text = f"{place.by} opens {place.name} again and again while it is held: a person must look"
        note = NoteLine(at=now, subject=place.subject, code="manager_disagrees", text=text)
        if (note.subject, note.code, note.text) not in fleet.ledger.notes:
            yield note


def _drains(fleet: Fleet, place: Place) -> list[ActionLine]:
    """All that was ever asked for this place, oldest first."""
    return [one for one in fleet.ledger.of_subject(place.subject, ActionKind.DRAIN) if one.rule == place.rule]


def _give_in(fleet: Fleet, place: Place, holds: list[HoldLine], asked: ActionLine, now: float) -> Iterator[AnyLine]:
    """A person has given it back there: what the policy holds there ends as if they had said so here."""
    why = f"a person gave it back in {place.by}"
    for hold in [hold for hold in holds if hold.owner == OWNER]:
        yield lift(hold, why, now)
        incident = fleet.ledger.incidents.get(hold.incident or "")
        if incident is not None:
            yield from call_off(fleet, incident, why, now)
    yield _release(fleet, place, asked, why, now)


# -- opening ----------------------------------------------------------------------------------------------


def _open(fleet: Fleet, place: Place, asked: ActionLine, now: float) -> Iterator[AnyLine]:
    """Give it back: what was never asked for is called off, what was asked for is taken back by the manager."""
    if asked.of is ActionKind.DRAIN:
        if asked.state not in TERMINAL_ACTIONS:
            yield move(asked, ActionState.CANCELLED, "nothing holds it any more", now)
        if asked.id in fleet.ledger.ordered_at:
            yield _release(fleet, place, asked, "nothing holds it any more", now)


def _release(fleet: Fleet, place: Place, asked: ActionLine, why: str, now: float) -> ActionLine:
    return draw(
        fleet,
        now,
        ActionKind.RELEASE,
        action_id(ActionKind.RELEASE, asked.id),
        place.subject,
        state=ActionState.ORDERED,
        rule=place.rule,
        why=why,
    )
