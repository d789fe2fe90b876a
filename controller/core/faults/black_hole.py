"""Black holes: a node, or a GPU, on which every replica fails before it was ever ready.

An empty node that fails fast attracts all the work there is. Three different replicas failed there within an hour,
and none became ready: no more work goes there until a person has looked; what runs there is left alone. A replica
that fails everywhere has itself to blame, and so has one that fails alone.
"""

from collections import Counter
from collections.abc import Iterator

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.ledger import FailedStart
from controller.core.fleet.names import hold_id
from controller.core.policy import budget
from controller.core.policy.policy import OWNER, Leave, may
from vocab.events import Event, Evidence, Scope, Source, event_id, rfc3339
from vocab.lines import EventLine, HoldLine, IncidentLine, Subject
from vocab.states import ClearsOn, Level

CODE = "placement_black_hole"
WINDOW_S = 3600.0
REPLICAS = 3


def judge(fleet: Fleet, now: float) -> Iterator[EventLine]:
    """The events of nodes and GPUs that have become one."""
    recent = [start for start in fleet.ledger.failed_starts if now - start.at <= WINDOW_S]
    for node in dict.fromkeys(start.node for start in recent):
        here = [start for start in recent if start.node == node]
        worked = fleet.ledger.started_at.get(Subject(node=node), float("-inf"))
        whole = [start for start in here if start.at > worked]
        if _is_hole(fleet, whole, recent):
            yield from _say(fleet, Subject(node=node), node, whole, now)
            continue
        for gpu in dict.fromkeys(gpu for start in here for gpu in start.gpus):
            since = fleet.ledger.started_at.get(Subject(gpu=gpu), float("-inf"))
            alone = [start for start in here if start.at > since and start.gpus == (gpu,)]
            if _is_hole(fleet, alone, recent):
                yield from _say(fleet, Subject(gpu=gpu), node, alone, now)


def _is_hole(fleet: Fleet, failed: list[FailedStart], recent: list[FailedStart]) -> bool:
    if len({start.replica for start in failed}) < REPLICAS:
        return False
    deployments = {start.deployment for start in failed}
    if len(deployments) > 1:
        return True
    (deployment,) = deployments
    if any(replica.is_ready for replica in fleet.roster.of(deployment)):
        return True
    elsewhere = any(start.deployment == deployment and start.node != failed[0].node for start in recent)
    ours = all((found := fleet.roster.find(start.replica)) and found.start for start in failed)
    return not elsewhere and not ours  # it never ran anywhere: its own settings are to blame


def _say(fleet: Fleet, subject: Subject, node: str, failed: list[FailedStart], now: float) -> Iterator[EventLine]:
    if (subject, CODE, None) in fleet.ledger.open_conditions:
        return
    facts, first = fleet.node(node).facts, failed[0]
    boot = facts.boot_id if facts else None
    key = event_id(boot, subject.gpu or node, CODE, "", (failed[-1].event,))
    if key in fleet.ledger.events:
        return
    ((said, _),) = Counter(start.said for start in failed).most_common(1)
    names = list(dict.fromkeys(start.replica for start in failed))
    where = f"GPU {subject.gpu}" if subject.gpu else node
    stamp, row = rfc3339(now), fleet.row(CODE)
    event = Event(
        id=key,
        at=stamp,
        node=node,
        boot_id=boot,
        gpu=subject.gpu,
        code=CODE,
        severity=row.severity,
        recovery=row.recovery,
        scope=Scope.GPU if subject.gpu else Scope.NODE,
        source=Source.CORRAL,
        count=len(failed),
        first_at=rfc3339(first.at),
        last_at=stamp,
        fields={"failed": names, "said": said},
        text=f"{len(names)} different replicas failed on {where} and none became ready: {said}",
        evidence=tuple(Evidence(source="corral", at=rfc3339(s.at), line=f"{s.replica}: {s.said}") for s in failed[:6]),
    )
    yield EventLine(at=now, subject=subject, event=event)


def hold(fleet: Fleet, now: float) -> Iterator[HoldLine]:
    """Keep new work away. Other holds and what runs there are not touched."""
    for key in fleet.ledger.docket.incidents(CODE):
        yield from _hold(fleet, fleet.ledger.incidents[key], now)


def _hold(fleet: Fleet, incident: IncidentLine, now: float) -> Iterator[HoldLine]:
    ledger, subject = fleet.ledger, incident.subject
    key = hold_id(OWNER, CODE, incident.id)
    node = subject.node or (fleet.gpus[subject.gpu].node if subject.gpu in fleet.gpus else None)
    if node is None or key in ledger.holds or key in ledger.lifted:
        return
    verdict = may(fleet, node, Level.CORDON, now, incident)
    broken = budget.cordons(fleet, subject, node, now)
    go = verdict.leave is Leave.GO and broken is None
    if verdict.leave is Leave.LATER or (not go and key in ledger.would_holds):
        return
    why = verdict.why if broken is None else f"{broken.used:g} of {broken.limit:g} {broken.of}"
    root = ledger.events.get(incident.root)
    reason = f"{CODE}: {root.text if root else 'replicas fail here'}"
    yield HoldLine(
        at=now,
        subject=subject,
        id=key,
        op="placed" if go else "would_place",
        owner=OWNER,
        reason=reason if go else f"{reason}; not now: {why}",
        incident=incident.id,
        clears_on=ClearsOn.PERSON,
        budget=None if go or verdict.why else broken,
        rule=CODE,
    )
