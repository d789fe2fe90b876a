"""Groups are whole or not at all: one that has lost a part, or must be started anew, is stopped on all its nodes.

What is left of such a group serves nobody and keeps GPUs from others, so no level and no pause forbids the stop, as
they forbid no start. It is one drain, one stop and one failure, however many members it has; the next one starts
wherever there is room for all of it. A node of which nothing is known (its agent is silent, it may well run on) takes
no group down; one that is lost does.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.groups import has_ended, is_absent
from controller.core.fleet.kinds import STARTED
from controller.core.fleet.replicas import Life, Replica, incident_of
from controller.core.fleet.roster import BROKEN
from controller.core.policy.policy import rule_of
from controller.core.replicas.actions import move
from controller.core.replicas.retire import Errand, changed, stop, unless_said
from vocab.lines import ActionLine
from vocab.messages import ReplicaStatus
from vocab.states import ActionKind, ActionState

LEFT = "replica/group_left"  # it is no fault of its own: a node is lost or has booted


def keep_whole(fleet: Fleet, now: float) -> Iterator[ActionLine]:
    """Stop what is left of groups that are none any more, and those that are to be restarted."""
    for replica in changed(fleet):
        if replica.is_group and not replica.is_clean:
            yield from _broken(fleet, replica, now)
    for action in fleet.ledger.live(ActionKind.RESTART_REPLICA):
        group = fleet.roster.find(action.subject.replica)
        if group is not None and group.is_group and action.state in STARTED:
            yield from _anew(fleet, group, action, now)


def _broken(fleet: Fleet, replica: Replica, now: float) -> Iterator[ActionLine]:
    if fleet.life(replica) is not Life.RUN or not fleet.patience.may_place(now):
        if fleet.life(replica) is Life.RUN:
            fleet.work.keep_replica(replica.id)
        return
    why, rule = why_broken(fleet, replica)
    if not why:
        return
    incident = incident_of(fleet.ledger, replica)
    led_by = fleet.ledger.incidents.get(incident or "")
    errand = Errand(rule_of(fleet, led_by), incident) if led_by is not None else Errand(rule)
    yield from unless_said(fleet, stop(fleet, replica, errand, ActionState.ORDERED, f"{why}: all of it must end", now))


def why_broken(fleet: Fleet, replica: Replica) -> tuple[str, str]:
    """Why a group cannot go on, and the rule by which it ends; two empty words if it can."""
    for node in replica.nodes:
        part = replica.part(node)
        if part is not None and has_ended(part):
            return f"its member on {node} has ended ({_how(part)})", BROKEN
    if replica.torn:
        return replica.torn, LEFT
    start = fleet.ledger.actions.get(replica.start or "")
    was_whole = start is None or start.state is ActionState.DONE
    for node in replica.nodes:
        part = replica.part(node)
        if node in fleet.ledger.lost:
            return f"{node} is lost", LEFT
        if was_whole and fleet.node(node).has_told and (part is None or is_absent(part)):
            return f"its member on {node} runs no more", LEFT
    return "", ""


def _how(part: ReplicaStatus) -> str:
    exit_ = part.exit
    if exit_ is None:
        return "no exit was seen"
    return exit_.reason or exit_.text or (f"signal {exit_.signal}" if exit_.signal else f"exit code {exit_.code}")


def _anew(fleet: Fleet, replica: Replica, restart: ActionLine, now: float) -> Iterator[ActionLine]:
    """A restart of a group: its processes would not begin at one moment, so all end and another group starts."""
    stopped = stop(fleet, replica, Errand(BROKEN), ActionState.ORDERED, f"started anew as a whole: {restart.why}", now)
    yield from unless_said(fleet, stopped)
    yield replace(
        move(restart, ActionState.COVERED, "a group is stopped and started anew as a whole", now), covered_by=stopped.id
    )
