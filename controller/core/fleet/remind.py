"""What a line makes due later: an order's end, the expiry of what waits, a probation, room in a window.

Whoever adds a rule that rests on time adds its moment here; a rule is not asked again before something is due.
"""

from controller.core.fleet.agenda import NEVER, Agenda
from controller.core.fleet.kinds import STARTED
from controller.core.fleet.ledger import FLEET, Ledger
from controller.core.fleet.settings import CORRELATION_S, EVIDENCE_S, PROBATION_S, PROVEN_S, STOP_GRACE_S, Settings
from vocab.lines import ActionLine, HoldLine, IncidentLine, Subject
from vocab.states import REPAIRS, ActionKind, ActionState


def end_of(ledger: Ledger, action: ActionLine) -> float:
    """When an order is over if nothing is heard: counted from its first order, over every restart; it may never be."""
    if action.ttl_s is None:
        return NEVER
    grace = STOP_GRACE_S if action.of is ActionKind.STOP_REPLICA else 0.0
    return ledger.ordered_at.get(action.id, action.at) + action.ttl_s + grace


def of_action(agenda: Agenda, settings: Settings, ledger: Ledger, action: ActionLine) -> None:
    """The moments of an action that has just been folded."""
    subject = action.subject
    if action.state in STARTED:
        agenda.remind(end_of(ledger, action), subject)
    elif action.state is ActionState.WAITING and action.budget is not None:
        agenda.remind(action.at + EVIDENCE_S, subject)
    elif action.state is ActionState.DONE and action.of in REPAIRS:
        agenda.remind(action.at + PROVEN_S, subject)
    elif action.state is ActionState.DONE and action.of is ActionKind.VALIDATE:
        agenda.remind(action.at + PROBATION_S, subject)
    elif action.of is ActionKind.START_REPLICA and action.deployment is not None:
        agenda.remind(action.at + settings.limits.window_s, Subject(deployment=action.deployment))


def of_incident(agenda: Agenda, incident: IncidentLine) -> None:
    """An incident that left nothing standing ends once nothing more comes to it."""
    if incident.state != "closed":
        agenda.remind(incident.at + CORRELATION_S, incident.subject)


def of_hold(agenda: Agenda, settings: Settings, hold: HoldLine) -> None:
    """A hold leaves the window: another may fit then, anywhere. One of a maintenance ends at its own time."""
    if hold.op == "placed":
        agenda.remind(hold.at + settings.limits.window_s, FLEET)
        if hold.until is not None:
            agenda.remind(hold.until, hold.subject)
