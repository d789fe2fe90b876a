"""When the rules must be looked at again though nothing was heard."""

from collections.abc import Iterator

from controller.core import actions, deployments, holds, liveness, repair, validation
from controller.core.fleet import Fleet
from controller.core.ledger import STARTED
from controller.core.settings import COLD_START_S, EVIDENCE_S, OBSERVED_S, PROBATION_S, PROVEN_S
from vocab.states import ActionState


def next_deadline(fleet: Fleet, now: float) -> float | None:
    """The earliest moment after ``now`` at which something may be due by itself."""
    return min((due for due in _all(fleet, now) if due is not None and due > now), default=None)


def _all(fleet: Fleet, now: float) -> Iterator[float | None]:
    yield from _of_the_start(fleet)
    yield liveness.changes_at(fleet, now)
    yield holds.expires_at(fleet, now)
    yield deployments.next_try(fleet, now)
    for key in fleet.ledger.live_actions:
        action = fleet.ledger.actions[key]
        if action.state in STARTED:
            yield actions.due_at(fleet, action)
        elif action.state is ActionState.WAITING and action.budget is not None:
            yield action.at + EVIDENCE_S
    for key in fleet.ledger.open_incidents:
        incident = fleet.ledger.incidents[key]
        passed = validation.passed_at(fleet, incident)
        yield None if passed is None else passed + PROBATION_S
        for attempt in repair.tries_of(fleet, incident):
            yield attempt.at + PROVEN_S if attempt.state is ActionState.DONE else None


def _of_the_start(fleet: Fleet) -> Iterator[float | None]:
    if fleet.began_at is not None:
        yield fleet.began_at + COLD_START_S
    for node in fleet.nodes.values():
        yield None if node.facts_at is None or node.replicas_at is not None else node.facts_at + COLD_START_S
        for _, at in node.observers.values():
            yield at + OBSERVED_S
