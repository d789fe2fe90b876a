"""A person's approval of a repair that waits: what still stands against it, and the floor that only force goes under.

A repair waits for a person because it takes more than its fault. Whether what it takes can be spared is asked again at
this moment, of all of it at once, as automation would ask.
"""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.names import token
from controller.core.fleet.stimuli import Asked
from controller.core.policy import budget, pause
from controller.core.policy.asked import actions, refuse, words
from controller.core.policy.place import gpus_of, node_of, place_of
from controller.core.policy.policy import is_able
from controller.core.repairs.disruption import covering, disrupted, taken
from controller.core.replicas.actions import move
from vocab.lines import ActionLine, AnyLine, Budget, IncidentLine, Subject
from vocab.states import REPAIRS, ActionKind, ActionState

STOPPED = frozenset({ActionState.WAITING, ActionState.WOULD})  # by what a person decides; by a pause or the policy


def approve(fleet: Fleet, asked: Asked, now: float) -> Iterator[AnyLine]:
    """Order what waits, under a new token, or say why not. One that goes under a floor says so in its ``budget``."""
    found = actions(fleet, asked, *REPAIRS)
    stopped = [action for action in found if action.state is ActionState.WAITING]
    if not stopped:
        forbidden = next((action.why for action in found if action.state is ActionState.WOULD), None)
        yield refuse(asked, f"it may not be done now: {forbidden}" if forbidden else "no such action waits", now)
    for action in stopped:
        disrupts = _disrupts(fleet, action)
        broken = _under_floor(fleet, (_site(fleet, action).place, *disrupts))
        against = _against(fleet, action)
        if against is None and broken is not None and not asked.force:
            against = f"it would leave {budget.words(broken)}: with force (--force) it is done all the same"
        if against is not None:
            yield refuse(asked, against, now, action.subject)
        else:
            ledger = fleet.ledger
            again = token(fleet.settings.epoch, ledger.number + 1 if ledger.epoch == fleet.settings.epoch else 1)
            ordered = move(action, ActionState.ORDERED, words(asked, "approved"), now, token=again, disrupts=disrupts)
            yield replace(ordered, budget=broken)


def named(fleet: Fleet, asked: Asked) -> list[ActionLine]:
    """The repairs that an approval is for, each with all that it takes now: its own place, too, and what is there."""
    found = [action for action in actions(fleet, asked, *REPAIRS) if action.state in STOPPED]
    return [replace(action, disrupts=_takes(fleet, action)) for action in found]


def _takes(fleet: Fleet, action: ActionLine) -> tuple[Subject, ...]:
    place = _site(fleet, action).place
    there = disrupted(fleet, [place.gpu]) if place.gpu is not None else ()
    found = dict.fromkeys((*there, *_disrupts(fleet, action)))
    return tuple(sorted(found, key=lambda subject: subject.gpu is None))  # its GPUs, then their replicas


class _Site(NamedTuple):
    """Where the fault is that an action repairs: a reboot for one GPU takes that one, too, with what is on it."""

    incident: IncidentLine | None
    place: Subject
    node: str | None  # None: the fault has gone from where it was


def _site(fleet: Fleet, action: ActionLine) -> _Site:
    incident = fleet.ledger.incidents.get(action.incident or "")
    place = place_of(fleet, incident) if incident is not None else None
    node = node_of(fleet, incident) if incident is not None and place is not None else None
    return _Site(incident, place or action.subject, node)


def _disrupts(fleet: Fleet, action: ActionLine) -> tuple[Subject, ...]:
    """What it takes beside its place, as things are now: since it was drawn up, replicas have come and gone."""
    _, place, node = _site(fleet, action)
    if node is None:
        return action.disrupts
    gpus = taken(fleet, action.of, node, gpus_of(fleet, place))
    return disrupted(fleet, [gpu for gpu in gpus if gpu != place.gpu])


def _under_floor(fleet: Fleet, struck: tuple[Subject, ...]) -> Budget | None:
    replicas = [fleet.roster.living.get(subject.replica or "") for subject in struck]
    on = [replica for subject in struck if subject.gpu is not None for replica in fleet.roster.on(subject.gpu)]
    return budget.floors(fleet, [*(replica for replica in replicas if replica is not None), *on])


def _against(fleet: Fleet, action: ActionLine) -> str | None:
    """Why an approved repair still cannot be ordered now, force or no force."""
    if (paused := pause.why_on(fleet, _node_of(fleet, action) or "")) is not None:
        return f"{paused}: resume first"
    if action.of is ActionKind.POWER_CYCLE and action.subject.node not in fleet.powered:
        return "power is not in our hands: a person must do it, then the condition clears"
    incident, place, node = _site(fleet, action)
    if not is_able(fleet, node or action.subject.node or "", action.of):
        return f"its node has no means for {action.of}: do it by hand, then the condition clears"
    if incident is not None and (incident.id not in fleet.ledger.open_incidents or node is None):
        return "its incident is closed"
    if covering(fleet, action.of, node or "", gpus_of(fleet, place)) is not None:
        return "another repair is under way there: approve again when it has ended"
    if budget.repairs(fleet) is not None:
        return "as many repairs as may be are under way: approve again when one has ended"
    return None


def _node_of(fleet: Fleet, action: ActionLine) -> str | None:
    gpu = fleet.gpus.get(action.subject.gpu or "")
    return gpu.node if gpu is not None else action.subject.node
