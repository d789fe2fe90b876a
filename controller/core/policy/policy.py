"""The policy: what a fault asks for, and whether automation may do it here and now. Tables and levels only.

The catalogue is the policy: an event carries the severity and the recovery of its row (or of its decode).
A hold is due when the recovery is a reset or harsher and the severity at least error. What a level, a pause
or a start forbids is said here once, for holds and actions alike.
"""

from enum import StrEnum

import msgspec

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.ladder import needs_repair
from controller.core.fleet.replicas import Replica
from controller.core.fleet.settings import EVIDENCE_S
from controller.core.policy import shadow
from controller.core.policy.pause import why_on
from controller.core.policy.place import code_of, grave, is_pruned, place_of
from vocab.events import HISTORY, Event, Flag, Recovery, Scope, Severity
from vocab.lines import IncidentLine, Subject
from vocab.states import NEEDED_LEVEL, ActionKind, Level

OWNER = "policy"


class Leave(StrEnum):
    """Whether something may be done now."""

    GO = "go"
    WOULD = "would"  # a level or a pause forbids it: say what would be done
    LATER = "later"  # too early to say anything


class Verdict(msgspec.Struct, frozen=True):
    """The leave, and why it is not given."""

    leave: Leave
    why: str = ""


def may(
    fleet: Fleet, node: str, needed: Level, now: float, incident: IncidentLine | None = None, code: str | None = None
) -> Verdict:
    """Whether automation may do what needs this level on this node, for this incident, or by the rule for ``code``.

    Only harmful things ask.
    """
    level = fleet.level(node)
    if level is None or not fleet.patience.is_settled(now):
        return Verdict(Leave.LATER, "nodes that were live have not reported since the start")
    paused = why_on(fleet, node)
    if paused is not None:
        return Verdict(Leave.WOULD, paused)
    if not level.allows(needed):
        return Verdict(Leave.WOULD, f"the level of {node} is {level}, this needs {needed}")
    if incident is not None:
        return _ruled(fleet, node, needed, code_of(fleet, incident), incident.subject.gpu)
    return _ruled(fleet, node, needed, code, None) if code is not None else Verdict(Leave.GO)


def _ruled(fleet: Fleet, node: str, needed: Level, code: str, gpu: str | None) -> Verdict:
    """What the rule that acts is allowed."""
    why = shadow.why(fleet, code, node, gpu)
    if why is not None:
        return Verdict(Leave.WOULD, why)
    level = fleet.rule(code, node, gpu).level
    if level is not None and not level.allows(needed):
        return Verdict(Leave.WOULD, f"the level of the rule for {code} is {level}, this needs {needed}")
    return Verdict(Leave.GO)


def may_act(
    fleet: Fleet, node: str, of: ActionKind, now: float, incident: IncidentLine | None = None, code: str | None = None
) -> Verdict:
    """``may`` for the level that an action needs."""
    return may(fleet, node, NEEDED_LEVEL[of], now, incident, code)


def may_act_on(
    fleet: Fleet, replica: Replica, of: ActionKind, now: float, incident: IncidentLine | None = None
) -> Verdict:
    """``may_act`` where a replica runs: of a group on every node of it."""
    verdicts = [may_act(fleet, node, of, now, incident) for node in replica.nodes]
    return next((verdict for verdict in verdicts if verdict.leave is not Leave.GO), verdicts[0])


def is_able(fleet: Fleet, node: str, of: ActionKind) -> bool:
    """Whether a node has the means for a repair. One that does not say is taken to have them: its agent refuses."""
    if of is ActionKind.POWER_CYCLE:
        return node in fleet.powered  # that is no affair of its agent
    facts = fleet.node(node).facts
    return facts is None or facts.abilities is None or of in facts.abilities


def counts(fleet: Fleet, event: Event) -> bool:
    """Whether an event can open a condition: one that is real, and of a code that stands."""
    return event.severity is not Severity.INFO and fleet.row(event.code).condition and is_real(fleet, event)


def is_momentary(fleet: Fleet, event: Event) -> bool:
    """Whether an event is a fault that leaves nothing standing: a contained error of one process, a killed process."""
    return not fleet.row(event.code).condition and opens_incident(event) and is_real(fleet, event)


def is_real(fleet: Fleet, event: Event) -> bool:
    """Whether an event can lead to anything: not a test's, not an earlier boot's, not a guess at the device."""
    if event.injected or event.drill or event.fields.get(HISTORY) or Flag.LOOKUP_FAILED in event.flags:
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
    if is_pruned(fleet, incident):
        return incident.recovery if needs_repair(incident.severity, incident.recovery) else Recovery.NONE
    asked = [event.recovery for event in grave(fleet, incident)]
    return max(asked, key=lambda recovery: recovery.rank, default=Recovery.NONE)


def wants_hold(fleet: Fleet, incident: IncidentLine) -> bool:
    """Whether the fault takes its GPU (or its node) out of service."""
    return place_of(fleet, incident) is not None


def has_fresh_evidence(fleet: Fleet, incident: IncidentLine, now: float, within_s: float = EVIDENCE_S) -> bool:
    """Whether the fault was seen lately (and since a backlog was discarded): by an event, or a GPU that still fails."""
    gpu = fleet.gpus.get(incident.subject.gpu or "")
    seen = max(fleet.ledger.evidence_at(incident), gpu.failed_at if gpu is not None else 0.0)
    return seen > fleet.ledger.discarded_at and now - seen < within_s


def rule_of(fleet: Fleet, incident: IncidentLine) -> str:
    """The name of the rule that acts for an incident."""
    return f"catalogue/{code_of(fleet, incident)}"
