"""A person closes an incident, and says whether Corral was right about it.

Closing an open one says that what it is about is well: its conditions end, the policy's hold is lifted, what is under
way for it is called off, and the node's agent looks at the GPU as if for the first time. A verdict can also be given on
an incident that is over, and be given anew: the last one counts.
"""

from collections.abc import Iterator

from controller.core.faults import conditions
from controller.core.faults.incidents import conditions_of
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.ledger import FLEET
from controller.core.fleet.stimuli import Asked
from controller.core.policy.place import code_of
from controller.core.repairs.release import let_go
from vocab.lines import AnyLine, IncidentLine, NoteLine

VERDICTS = ("right", "wrong")


def close(fleet: Fleet, asked: Asked, now: float) -> Iterator[AnyLine]:
    """End the incident, if it is open, and take the verdict down, if there is one."""
    incident = fleet.ledger.incidents.get(asked.incident or "")
    against = _against(fleet, incident, asked.verdict)
    if incident is None or against is not None:
        yield NoteLine(at=now, subject=FLEET, code="refused", text=f"close: {against}")
        return
    rule = _rule_of(fleet, incident)
    if incident.id in fleet.ledger.open_incidents:
        yield from _end(fleet, incident, _words(asked, "closed"), now)
    if asked.verdict is not None:
        text = f"{incident.id}: {_words(asked, asked.verdict)}"
        yield NoteLine(
            at=now, subject=incident.subject, code="verdict", text=text, rule=rule, incident=incident.id,
            right=asked.verdict == "right",
        )  # fmt: skip


def _against(fleet: Fleet, incident: IncidentLine | None, verdict: str | None) -> str | None:
    if incident is None:
        return "no such incident is known"
    if verdict is not None and verdict not in VERDICTS:
        return f"the verdict is right or wrong, not {verdict!r}"
    if verdict is None and incident.id not in fleet.ledger.open_incidents:
        return f"it is closed already ({incident.closed_because}); only a verdict can be added"
    return None


def _words(asked: Asked, said: str) -> str:
    why = f": {asked.reason}" if asked.reason else ""
    return f"{said} by {asked.by or asked.owner}{why}"


def _rule_of(fleet: Fleet, incident: IncidentLine) -> str:
    """The rule that held, or would have held, something for it."""
    of_holds = (rule for rule, holds in fleet.ledger.holds_of_rule.items() for hold in holds.values()
                if hold.incident == incident.id)  # fmt: skip
    return next(of_holds, code_of(fleet, incident))


def _end(fleet: Fleet, incident: IncidentLine, why: str, now: float) -> Iterator[AnyLine]:
    for condition in conditions_of(fleet, incident):
        if condition.state != "cleared":
            yield conditions.end(condition, now)
    yield from let_go(fleet, incident, why, now)
    if incident.subject.gpu is not None:
        yield NoteLine(at=now, subject=incident.subject, code="set_healthy", text=why)
