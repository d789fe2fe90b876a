"""Actions: how one is drawn up, how it moves, and how an order ends by what its node reports.

An order gets a new token each time it is given, so a node that saw a later one refuses an earlier one. An
action that has ended never moves again.
"""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.groups import has_ended
from controller.core.fleet.kinds import STARTED
from controller.core.fleet.names import token
from controller.core.fleet.remind import end_of
from controller.core.fleet.replicas import Replica
from controller.core.policy.pause import why_on
from vocab.lines import ActionLine, Subject
from vocab.messages import ActionItem
from vocab.states import REPAIRS, TERMINAL_ACTIONS, ActionKind, ActionState

STARTS = "it starts"  # of a restart: the process before has ended, another one begins
CUT_OFF = 3  # an engine's exit code when its drain's time was over before its requests
CALLS = frozenset({"replica_died", "replica_stalled", "collective_timeout", "replica_wrong_gpu"})  # for a restart


def draw(fleet: Fleet, now: float, of: ActionKind, key: str, subject: Subject, **more: Any) -> ActionLine:
    """A new action, under the policy in force and with the next token. ``more`` as ActionLine has it."""
    ledger, settings = fleet.ledger, fleet.settings
    number = ledger.number + 1 if ledger.epoch == settings.epoch else 1
    return ActionLine(
        at=now, subject=subject, id=key, of=of, token=token(settings.epoch, number), policy=settings.policy, **more
    )


def move(action: ActionLine, to: ActionState, why: str, now: float, **more: Any) -> ActionLine:
    """The action in another state, under its token."""
    return replace(action, at=now, state=to, why=why, budget=None, **more)


def placed_anew(fleet: Fleet, drawn: ActionLine) -> ActionLine | None:
    """``drawn`` unless it stands so already, is under way or has ended: what is due is said once."""
    known = fleet.ledger.actions.get(drawn.id)
    if known is not None and (known.state is drawn.state or known.state in STARTED | TERMINAL_ACTIONS):
        return None
    return drawn


def outcome(fleet: Fleet, item: ActionItem, now: float) -> Iterator[ActionLine]:
    """What a node says became of an order. Of one that has ended, or of an older token, it says nothing new."""
    action = fleet.ledger.actions.get(item.id)
    if action is None or action.state not in STARTED or action.state is item.state:
        return
    if item.token and item.token != action.token:
        return
    if item.state is ActionState.RUNNING and action.of is ActionKind.POWER_CYCLE and why_on(fleet, item.node):
        return  # an agent sees a pause by itself; the hand on the power asks here before it begins
    if item.state in TERMINAL_ACTIONS or item.state is ActionState.RUNNING:
        yield move(action, item.state, item.error or f"{item.node} reports {item.state}", now)


def follow(fleet: Fleet, now: float) -> Iterator[ActionLine]:
    """Move every order on by what replicas and nodes do, and end those whose time is over."""
    ledger = fleet.ledger
    for action in ledger.live(ActionKind.DRAIN):
        if action.state not in STARTED and action.subject.replica in fleet.roster.departed:
            yield move(action, ActionState.CANCELLED, "the replica has ended by itself", now)
    for action in ledger.live(ActionKind.START_REPLICA):
        if action.state in STARTED and action.subject.replica in fleet.roster.departed:
            yield move(action, ActionState.CANCELLED, "the replica was taken away before it was ready", now)
    for action in [ledger.actions[key] for key in ledger.started]:
        replica = fleet.roster.living.get(action.subject.replica or "")
        moved = _FOLLOW[action.of](fleet, action, replica) if replica is not None and action.of in _FOLLOW else None
        if action.of in REPAIRS and _has_new_boot(fleet, action):
            moved = ActionState.DONE, "the node has a new boot id"
        if (moved is None or moved[0] is action.state) and now >= end_of(ledger, action):
            moved = ActionState.TIMED_OUT, f"no end after {action.ttl_s:g} s"
        is_news = moved is not None and (moved[0] is not action.state or (moved[1] == STARTS != action.why))
        if moved is not None and is_news:
            yield move(action, moved[0], moved[1], now)


Moved = tuple[ActionState, str] | None


def _started(_: Fleet, action: ActionLine, replica: Replica) -> Moved:
    if replica.is_dead and _answers(replica, action):
        exit_ = replica.status.exit if replica.status else None
        return (
            ActionState.FAILED,
            f"it ended before it was ready: {exit_.text or exit_.reason if exit_ else 'no exit seen'}",
        )
    if replica.is_ready:
        return ActionState.DONE, "ready"
    return (ActionState.RUNNING, "starting") if replica.status is not None else None


def _drained(fleet: Fleet, action: ActionLine, replica: Replica) -> Moved:
    status = replica.status
    if replica.is_clean and status is not None:
        if status.exit is not None and status.exit.code == CUT_OFF:
            return ActionState.TIMED_OUT, "its time was over before its last request"
        return ActionState.DONE, "no open request is left and it has exited"
    if _is_gone(fleet, action, replica):
        return ActionState.DONE, "its node no longer lists it"
    if status is not None and status.phase == "draining" and status.released:
        return ActionState.DONE, status.released
    if status is not None and status.phase == "draining":
        return ActionState.RUNNING, f"{status.open_requests} requests open"
    return None


def stopped(fleet: Fleet, action: ActionLine, replica: Replica) -> Moved:
    """That a replica has ended which was told to; None while something of it may be left."""
    if replica.is_clean or _is_gone(fleet, action, replica):
        return ActionState.DONE, "it has exited, and nothing of it is left"
    return None


def _restarted(fleet: Fleet, action: ActionLine, replica: Replica) -> Moved:
    """Over when it serves again; a new process that ends before that is a restart that failed."""
    status = replica.status
    calls = any(condition.code in CALLS for condition in fleet.conditions_on(replica.subject))
    if replica.is_ready and replica.is_stepping and not calls:
        return ActionState.DONE, "it serves again"
    if action.why == STARTS and replica.is_dead:
        return ActionState.FAILED, "it ended again before it was ready"
    starts = status is not None and status.phase == "starting" and status.exit is None
    return (ActionState.RUNNING, STARTS) if starts else None


def _is_gone(fleet: Fleet, action: ActionLine, replica: Replica) -> bool:
    """Whether each node told its list after the order, without this one; a node that is lost cannot tell of a group."""
    if not replica.is_group:
        return _is_unlisted(fleet, action, replica, replica.node)
    parts = {node: replica.part(node) for node in replica.nodes if node not in fleet.ledger.lost}
    return all(
        _is_unlisted(fleet, action, replica, node) or (part is not None and has_ended(part) and not part.leftovers)
        for node, part in parts.items()
    )


def _is_unlisted(fleet: Fleet, action: ActionLine, replica: Replica, node: str) -> bool:
    told = fleet.node(node).replicas_at
    ordered = fleet.ledger.ordered_at.get(action.id, action.at)
    return replica.part(node) is None and told is not None and told > ordered


def _has_new_boot(fleet: Fleet, action: ActionLine) -> bool:
    """Whether the node has booted since the repair was ordered: its boot is not that of what was known then."""
    ledger = fleet.ledger
    incident = ledger.incidents.get(action.incident or "")
    gpu = fleet.gpus.get(action.subject.gpu or "")
    facts = fleet.node(action.subject.node or (gpu.node if gpu is not None else "")).facts
    if incident is None or facts is None:
        return False
    ordered = ledger.ordered_at.get(action.id, action.at)
    known = [ledger.events[key] for key in incident.events if ledger.first_taken_at.get(key, ordered + 1) <= ordered]
    boots = [event.boot_id for event in known if event.boot_id is not None]
    return bool(boots) and facts.boot_id != boots[-1]


def _answers(replica: Replica, action: ActionLine) -> bool:
    return replica.status is None or not replica.status.token or replica.status.token == action.token


_FOLLOW = {
    ActionKind.START_REPLICA: _started,
    ActionKind.DRAIN: _drained,
    ActionKind.STOP_REPLICA: stopped,
    ActionKind.RESTART_REPLICA: _restarted,
}
