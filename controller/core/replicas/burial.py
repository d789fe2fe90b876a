"""Burial: records of replicas of which nothing runs end, so that others are started in their place. It harms nothing.

Ended:     its agent says so and starts it no more.
Gone:      it was found on a node once, and that no longer lists it.
Shut out:  it must be started anew, and a GPU of it is held: its node starts nothing there (a hold keeps new work off;
           what runs under somebody's hold goes on serving).
"""

from collections.abc import Iterator

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.replicas import Life, Replica, incident_of, reachable
from controller.core.fleet.roster import GAVE_UP
from controller.core.replicas import restart
from controller.core.replicas.retire import Errand, changed, stop, unless_said
from vocab.lines import ActionLine, StateLine
from vocab.states import ActionState, ReplicaState

GONE = "replica/gone"
SHUT_OUT = "replica/shut_out"
OVER = frozenset({ReplicaState.FAILED, ReplicaState.STOPPED, ReplicaState.CRASH_LOOP})


def bury(fleet: Fleet, now: float) -> Iterator[ActionLine | StateLine]:
    """End the records of what does not run and will not run where it is."""
    for replica in changed(fleet):
        if fleet.life(replica) is not Life.RUN:
            continue
        if not all(fleet.patience.knows(node, now) for node in replica.nodes):
            fleet.work.keep_replica(replica.id)
        elif replica.is_dead:
            yield from _ended(fleet, replica, now)
        elif replica.is_absent and all(fleet.node(node).has_told for node in replica.nodes):
            yield from _absent(fleet, replica, now)


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
