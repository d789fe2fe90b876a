"""Owners: who ends a replica that Corral did not start, and what a repair on a managed node waits for."""

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.kinds import STARTED, WIDE
from controller.core.fleet.replicas import Replica
from controller.core.fleet.stimuli import Managed
from controller.core.replicas import site_units
from vocab.states import ActionKind, ActionState
from vocab.units import KIND

MOST_ASKED = 3  # times that an owner is asked to end one replica for one fault: it puts it back where it was


def kind_of(fleet: Fleet, replica: Replica) -> str:
    """Who is asked to end a replica: whom its deployment names, else whom its node sees it run under."""
    deployment, status = fleet.deployments.get(replica.deployment), replica.status
    if deployment is not None and deployment.managed_by in {"hook", "none"}:
        return deployment.managed_by
    seen = status.owner.kind if status is not None and status.owner is not None else ""
    return seen or (deployment.managed_by if deployment is not None else "")


def against_drain(fleet: Fleet, replica: Replica, owner: str) -> str | None:
    """Why the owner of a replica cannot be asked to end it now; None if it can. ``owner``: its name in words."""
    kind = kind_of(fleet, replica)
    if kind == KIND and replica.observed:
        return site_units.against(fleet, replica, "drain")
    asked, managed = fleet.managers.known.get(kind), fleet.managers.on(replica.node, kind)
    if managed is not None and not (asked is not None and asked.ends) and replica.node in managed.ours:
        return f"it ends with its owner ({owner}): {kind} gives {replica.node} no new work"
    if asked is None or not asked.ends or not replica.observed:
        return f"it was not started by us: its owner ({owner}) must drain it"
    if not asked.ok:
        return f"its owner ({owner}) must drain it, and {kind} cannot be asked: {asked.why}"
    return _against_move(replica, managed, kind) if asked.nodes else None


def _against_move(replica: Replica, managed: Managed | None, kind: str) -> str | None:
    """Where the manager chooses the place itself: ended too early, the next one would come to the same GPU."""
    if managed is None:
        return f"{kind} does not know {replica.node}: a person must drain it"
    if managed.other:
        return f"{replica.node} is left alone: {managed.other}"
    if managed.grain == "none":
        return f"{kind} would start it on the same GPU again: it may not keep work off that, so a person must drain it"
    closed = replica.node in managed.ours or any(gpu in managed.ours for gpu in replica.gpus)
    return None if closed else f"{kind} must keep new work off that GPU first"


def turn_of(fleet: Fleet, replica: Replica, incident: str | None, rule: str) -> tuple[int, str | None]:
    """How often its owner was asked for one reason and it ended or not, and why it is not asked again, if so."""
    drains = fleet.ledger.of_subject(replica.subject, ActionKind.DRAIN)
    asked = [
        one for one in drains if (one.incident, one.rule) == (incident, rule) and one.id in fleet.ledger.ordered_at
    ]
    ended = [one for one in asked if one.state not in STARTED]
    if ended and ended[-1].state in {ActionState.REFUSED, ActionState.FAILED, ActionState.TIMED_OUT}:
        return len(ended), f"its owner did not end it: {ended[-1].why}; a person must"
    if len(ended) >= MOST_ASKED:
        return len(ended), f"its owner has started it there again {len(ended)} times: a person must look"
    return len(ended), None


# -- repairs ----------------------------------------------------------------------------------------------


def against_repair(fleet: Fleet, rung: ActionKind, node: str) -> str | None:
    """What a repair on a managed node waits for; None if its managers have nothing against it."""
    for one in fleet.managers.unheard():
        return f"{one.by} has not said yet what it manages: {one.why}"
    for managed in fleet.managers.of(node):
        why = _against(fleet, rung, managed)
        if why is not None:
            return why
    return None


def _against(fleet: Fleet, rung: ActionKind, managed: Managed) -> str | None:
    by, node = managed.by, managed.node
    asked = fleet.managers.known[by]
    if not asked.ok:
        return f"{by} does not answer, so nobody knows what it runs on {node}: {asked.why}"
    if managed.other:
        return f"somebody else is at work on {node}: {managed.other}"
    if managed.grain == "none":
        return f"{by} may start work there at any time: close {node} in it, then approve"
    closed, whole = node in managed.ours, asked.whole or rung in WIDE
    if (managed.grain == "node" or rung in WIDE) and not (closed and (managed.busy is False or not whole)):
        also = ", and its work there must have ended" if whole else ""  # said once, so it names all that is awaited
        return f"{by} must have closed {node}{also}"
    return None
