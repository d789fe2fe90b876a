"""The policy: what a fault asks for, and whether automation may do it here and now. Tables and levels only.

The catalogue is the policy: an event carries the severity and the recovery of its row (or of its decode).
A hold is due when the recovery is a reset or harsher and the severity at least error. What a level, a pause
or a start forbids is said here once, for holds and actions alike.
"""

from enum import StrEnum

import msgspec

from controller.core.fleet import Fleet, needs_repair
from controller.core.settings import EVIDENCE_S
from vocab.events import HISTORY, Event, Flag, Recovery, Scope, Severity
from vocab.lines import IncidentLine, Subject
from vocab.states import NEEDED_LEVEL, ActionKind, Level

OWNER = "policy"

LADDER: dict[Recovery, ActionKind | None] = {
    Recovery.NONE: None,
    Recovery.INVESTIGATE: None,
    Recovery.RESTART_APP: None,  # the agent restarts a crashed replica itself; a stepping one is left alone
    Recovery.DRAIN_AND_RESET: ActionKind.RESET_GPU,
    Recovery.RESET_GPU: ActionKind.RESET_GPU,
    Recovery.REBOOT_NODE: ActionKind.REBOOT_NODE,
    Recovery.POWER_CYCLE: ActionKind.POWER_CYCLE,
    Recovery.CONTACT_SUPPORT: ActionKind.QUARANTINE,
}
NEXT_RUNG: dict[ActionKind, ActionKind] = {
    ActionKind.RESET_GPU: ActionKind.REBOOT_NODE,
    ActionKind.REBOOT_NODE: ActionKind.POWER_CYCLE,
    ActionKind.POWER_CYCLE: ActionKind.QUARANTINE,
}


class Leave(StrEnum):
    """Whether something may be done now."""

    GO = "go"
    WOULD = "would"  # a level or a pause forbids it: say what would be done
    LATER = "later"  # too early to say anything


class Verdict(msgspec.Struct, frozen=True):
    """The leave, and why it is not given."""

    leave: Leave
    why: str = ""


def may(fleet: Fleet, node: str, needed: Level, now: float) -> Verdict:
    """Whether automation may do what needs this level on this node. Only harmful things are asked about."""
    level = fleet.level(node)
    if level is None or not fleet.patience.is_settled(now):
        return Verdict(Leave.LATER, "nodes that were live have not reported since the start")
    if fleet.ledger.paused is not None:
        return Verdict(Leave.WOULD, f"automation is paused: {fleet.ledger.paused.text}")
    if fleet.node(node).paused:
        return Verdict(Leave.WOULD, f"automation is paused by a file on {node}")
    if not level.allows(needed):
        return Verdict(Leave.WOULD, f"the level of {node} is {level}, this needs {needed}")
    return Verdict(Leave.GO)


def may_act(fleet: Fleet, node: str, of: ActionKind, now: float) -> Verdict:
    """``may`` for the level that an action needs."""
    return may(fleet, node, NEEDED_LEVEL[of], now)


def counts(fleet: Fleet, event: Event) -> bool:
    """Whether an event can open a condition: not a test's, not an earlier boot's, not a guess at the device."""
    if event.injected or event.drill or event.fields.get(HISTORY) or Flag.LOOKUP_FAILED in event.flags:
        return False
    if event.severity is Severity.INFO or not fleet.row(event.code).condition:
        return False
    facts = fleet.node(event.node).facts
    return not (facts and event.boot_id and facts.boot_id != event.boot_id)


def subject_of(event: Event) -> Subject:
    """What an event is about: its replica, its GPU, else its node."""
    replica = event.fields.get("replica")
    if event.scope is Scope.REPLICA and isinstance(replica, str):
        return Subject(replica=replica)
    return Subject(gpu=event.gpu) if event.gpu else Subject(node=event.node)


def opens_incident(event: Event) -> bool:
    """Whether a condition of this event is a story of its own: at least an error that asks for something."""
    return event.severity.rank >= Severity.ERROR.rank and event.recovery is not Recovery.NONE


def demand(fleet: Fleet, incident: IncidentLine) -> Recovery:
    """The harshest recovery that an event of the incident asks for in earnest; none if no GPU has to leave service.

    Severity and advice must come from one event: a hot GPU with a pending remap is no reason for a reset.
    """
    events = [fleet.ledger.events[key] for key in incident.events if key in fleet.ledger.events]
    if not events:  # so old that its events were pruned: what it was opened for still holds
        return incident.recovery if needs_repair(incident.severity, incident.recovery) else Recovery.NONE
    asked = [event.recovery for event in events if needs_repair(event.severity, event.recovery)]
    return max(asked, key=lambda recovery: recovery.rank, default=Recovery.NONE)


def wants_hold(fleet: Fleet, incident: IncidentLine) -> bool:
    """Whether the fault takes its GPU out of service."""
    return incident.subject.gpu is not None and demand(fleet, incident) is not Recovery.NONE


def has_fresh_evidence(fleet: Fleet, incident: IncidentLine, now: float) -> bool:
    """Whether the fault was seen lately: by an event, or by a GPU that still does not answer."""
    gpu = fleet.gpus.get(incident.subject.gpu or "")
    if gpu is not None and gpu.status is not None and gpu.status.error is not None:
        return True
    return now - fleet.ledger.evidence_at(incident) < EVIDENCE_S


def rule_of(incident: IncidentLine) -> str:
    """The name of the rule that acts for an incident."""
    return f"catalogue/{incident.code}"
