"""The end of an incident: what is still under way for it is called off, its holds go, its GPU is free again.

Never forbidden by a level, a pause or a budget. Holds of others stay.
"""

from collections.abc import Iterator

from controller.core.faults.incidents import close
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.kinds import STARTED
from controller.core.fleet.names import action_id
from controller.core.policy.policy import rule_of
from controller.core.repairs.holds import lift, standing_for
from controller.core.replicas.actions import draw, move
from vocab.lines import AnyLine, IncidentLine
from vocab.states import TERMINAL_ACTIONS, ActionKind, ActionState

COME_BACK = frozenset({ActionKind.START_REPLICA, ActionKind.RESTART_REPLICA})  # what is coming up goes on coming up


def let_go(fleet: Fleet, incident: IncidentLine, because: str, now: float) -> Iterator[AnyLine]:
    """Close an incident for good."""
    hold = standing_for(fleet, incident)
    yield close(incident, because, now)
    yield from call_off(fleet, incident, f"the incident is closed: {because}", now)
    if hold is None:
        return
    yield lift(hold, because, now)
    yield draw(
        fleet,
        now,
        ActionKind.RELEASE,
        action_id(ActionKind.RELEASE, incident.id),
        incident.subject,
        state=ActionState.DONE,
        incident=incident.id,
        rule=rule_of(fleet, incident),
        why=because,
    )


def call_off(fleet: Fleet, incident: IncidentLine, why: str, now: float) -> Iterator[AnyLine]:
    """Cancel what is unfinished for an incident. A replica that starts as a replacement goes on starting."""
    for key in list(fleet.ledger.actions_of_incident.get(incident.id, ())):
        action = fleet.ledger.actions[key]
        if action.state in TERMINAL_ACTIONS or action.of is ActionKind.STOP_REPLICA:
            continue
        if action.of not in COME_BACK or action.state not in STARTED:
            yield move(action, ActionState.CANCELLED, why, now)
