"""Burial: records of replicas of which nothing runs end, so that others are started in their place. It harms nothing.

Ended:     its agent says so and starts it no more.
Gone:      it was found on a node once, and that no longer lists it.
Late:      its stop timed out (its node was silent, or it would not end), and by now its node says that it has ended.
Shut out:  it must be started anew, and a GPU of it is held: its node starts nothing there (a hold keeps new work off;
           what runs under somebody's hold goes on serving).
"""

from collections.abc import Iterator

from msgspec.structs import replace

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.kinds import STARTED
from controller.core.fleet.names import action_id
from controller.core.fleet.replicas import Life, Replica, incident_of, reachable
from controller.core.fleet.roster import GAVE_UP
from controller.core.replicas import actions, restart
from controller.core.replicas.retire import Errand, changed, stop, unless_said
from vocab.lines import ActionLine, StateLine
from vocab.states import ActionKind, ActionState, ReplicaState

GONE = "replica/gone"
SHUT_OUT = "replica/shut_out"
OVER = frozenset({ReplicaState.FAILED, ReplicaState.STOPPED, ReplicaState.CRASH_LOOP})


def bury(fleet: Fleet, now: float) -> Iterator[ActionLine | StateLine]:
    """End the records of what does not run and will not run where it is."""
    for replica in changed(fleet):
        stage = fleet.life(replica)
        if stage is Life.STOP:
            yield from _late(fleet, replica, now)
        if stage is not Life.RUN:
            continue
        if not all(fleet.patience.knows(node, now) for node in replica.nodes):
            fleet.work.keep_replica(replica.id)
        elif replica.is_dead:
            yield from _ended(fleet, replica, now)
        elif replica.is_absent and all(fleet.node(node).has_told for node in replica.nodes):
            yield from _absent(fleet, replica, now)


def _late(fleet: Fleet, replica: Replica, now: float) -> Iterator[ActionLine]:
    """A stop that has timed out moves no more; that the replica has ended after all is told by one of its own."""
    stops = fleet.ledger.of_subject(replica.subject, ActionKind.STOP_REPLICA)
    timed_out = [action for action in stops if action.state is ActionState.TIMED_OUT]
    if replica.observed or not timed_out or any(action.state in STARTED for action in stops):
        return
    found = actions.stopped(fleet, timed_out[-1], replica)
    if found is None:
        fleet.work.keep_replica(replica.id)
        return
    late = timed_out[-1]
    ended = stop(fleet, replica, Errand(late.rule, late.incident), ActionState.DONE, f"after its time: {found[1]}", now)
    yield replace(ended, id=action_id(ActionKind.STOP_REPLICA, replica.id, "late"))


def _ended(fleet: Fleet, replica: Replica, now: float) -> Iterator[ActionLine | StateLine]:
    if not replica.is_clean or restart.is_under_way(fleet, replica):
        return  # its GPUs are not free, or it comes back on them
    yield from _failed(fleet, replica, now)
    why = f"it has ended and is not restarted: {_how_it_ended(replica)}"
    yield stop(fleet, replica, Errand(GAVE_UP, incident_of(fleet.ledger, replica)), ActionState.DONE, why, now)


def _absent(fleet: Fleet, replica: Replica, now: float) -> Iterator[ActionLine]:
    incident = incident_of(fleet.ledger, replica)
    if replica.start is None and replica.status is None:
        why = "it was found here once, and its node no longer lists it"
        yield stop(fleet, replica, Errand(GONE, incident), ActionState.DONE, why, now)
        return
    holds = [hold for gpu in replica.gpus for hold in fleet.holds_on(gpu)]
    if not holds or incident is not None or restart.owner(fleet, replica) != restart.OURS:
        return  # it will start; or its incident leads it away
    why = f"it does not run, and cannot start where {holds[0].owner} holds: {holds[0].reason}"
    # ordered, not done: a start that is on its way to the node must not begin after all
    yield from unless_said(fleet, stop(fleet, replica, Errand(SHUT_OUT), ActionState.ORDERED, why, now))


def _failed(fleet: Fleet, replica: Replica, now: float) -> Iterator[StateLine]:
    """Say that it has failed, unless its word tells already that it is over."""
    before = fleet.ledger.words.get(replica.subject)
    exit_ = replica.status.exit if replica.status else None
    if before is None or before in OVER or exit_ is None or (exit_.code == 0 and exit_.signal is None):
        return
    to = fleet.word_of(replica)
    if reachable(before, to) is to:
        why = f"exit: {exit_.reason or exit_.text or exit_.code or f'signal {exit_.signal}'}"
        yield StateLine(at=now, subject=replica.subject, from_=before, to=to, why=why)


def _how_it_ended(replica: Replica) -> str:
    exit_ = replica.status.exit if replica.status else None
    if exit_ is None:
        return "no exit was seen"
    return exit_.reason or exit_.text or (f"signal {exit_.signal}" if exit_.signal else f"exit code {exit_.code}")
