"""Observed replicas that have ended: their owner's affair, and an end of their story here, not of their name.

What waited for the owner is over, and nobody is left who could report their conditions good. They do not depart:
under the same name the owner may start them again.
"""

from collections.abc import Iterator

from controller.core.faults import conditions
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.kinds import STARTED
from controller.core.fleet.replicas import Replica
from controller.core.replicas.actions import move
from controller.core.replicas.retire import changed
from vocab.lines import ActionLine, ConditionLine, StateLine, Target
from vocab.states import TERMINAL_ACTIONS, ActionKind, ActionState, ReplicaState

WHY = "its owner has ended it"
WAITED_FOR = (ActionKind.DRAIN, ActionKind.RESTART_REPLICA)


def leave(fleet: Fleet, now: float) -> Iterator[ActionLine | ConditionLine | StateLine]:
    """Let go of observed replicas that run no more, or that their node lists no more."""
    for replica in changed(fleet):
        if replica.observed and _has_ended(fleet, replica, now):
            yield from _over(fleet, replica, now)


def _has_ended(fleet: Fleet, replica: Replica, now: float) -> bool:
    if not fleet.patience.knows(replica.node, now):
        fleet.work.keep_replica(replica.id)
        return False
    return replica.is_dead or (replica.status is None and fleet.node(replica.node).has_told)


def _over(fleet: Fleet, replica: Replica, now: float) -> Iterator[ActionLine | ConditionLine | StateLine]:
    for action in fleet.ledger.of_subject(replica.subject, *WAITED_FOR):
        if action.of is ActionKind.RESTART_REPLICA and action.state in STARTED:
            continue  # its unit was told to: this is the end of one process, and another one begins
        if action.state not in TERMINAL_ACTIONS:
            yield move(action, ActionState.EXPIRED, WHY, now)
    for condition in fleet.conditions_on(replica.subject):
        yield conditions.end(condition, now)
    before = fleet.ledger.words.get(replica.subject)
    yield StateLine(
        at=now,
        subject=replica.subject,
        from_=before,
        to=ReplicaState.STOPPED,
        why=WHY,
        deployment=replica.deployment,
        target=Target(node=replica.node, gpus=replica.gpus),
        observed=True,
    )
