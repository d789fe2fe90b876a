"""What managers and owners are asked to do now, each order until it is seen done.

An adapter acts on these alone, and only while they are given: a pause, a level, or somebody else's work on the node
takes them back.
"""

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.kinds import STARTED
from controller.core.fleet.ledger import MANAGER
from controller.core.fleet.views import OwnerOrder
from controller.core.policy.place import gpus_of
from controller.core.policy.policy import Leave, may_act
from controller.core.replicas.owners import kind_of
from controller.core.replicas.retire import ASKED
from vocab.lines import ActionLine, Subject
from vocab.states import ActionKind, ActionState


def orders(fleet: Fleet, now: float) -> tuple[OwnerOrder, ...]:
    """All that is asked of managers and owners now, each until it is seen done."""
    if not fleet.managers.known:
        return ()
    asked = [a for a in fleet.ledger.live(ActionKind.DRAIN, ActionKind.RELEASE) if a.state in STARTED]
    found = (_of_replica(fleet, a, now) if a.subject.replica is not None else _of_place(fleet, a, now) for a in asked)
    return tuple(order for order in found if order is not None)


def _of_place(fleet: Fleet, action: ActionLine, now: float) -> OwnerOrder | None:
    gpu = fleet.gpus.get(action.subject.gpu or "")
    node = gpu.node if gpu is not None else action.subject.node
    if node is None or not action.rule.startswith(MANAGER) or action.state is not ActionState.ORDERED:
        return None
    by = action.rule.removeprefix(MANAGER)
    managed = fleet.managers.on(node, by)
    if action.of is ActionKind.DRAIN and (managed is None or managed.other or not _may(fleet, node, action, now)):
        return None
    holds = [h for uuid in gpus_of(fleet, action.subject) for h in fleet.ledger.standing(Subject(gpu=uuid))]
    holds += fleet.ledger.standing(Subject(node=node))
    hold = next((hold.id for hold in holds if not hold.owner.startswith("agent:")), "")
    return OwnerOrder(by=by, action=action, node=node, gpu=action.subject.gpu, hold=hold)


def _of_replica(fleet: Fleet, action: ActionLine, now: float) -> OwnerOrder | None:
    replica = fleet.roster.living.get(action.subject.replica or "")
    if action.of is not ActionKind.DRAIN or replica is None or not replica.observed:
        return None
    managed = fleet.managers.on(replica.node, kind_of(fleet, replica))
    if (managed is not None and managed.other) or not _may(fleet, replica.node, action, now):
        return None
    status = replica.status
    return OwnerOrder(
        by=kind_of(fleet, replica),
        action=action,
        node=replica.node,
        replica=replica.id,
        deployment=replica.deployment,
        owner=status.owner if status is not None else None,
        gpus=replica.gpus,
    )


def _may(fleet: Fleet, node: str, action: ActionLine, now: float) -> bool:
    """Whether automation may still do it; what a person asked for needs no leave."""
    incident = fleet.ledger.incidents.get(action.incident or "")
    return action.rule == ASKED or may_act(fleet, node, ActionKind.DRAIN, now, incident).leave is Leave.GO
