"""Stranded GPUs: nothing is wrong with them, but the replica that they belong to cannot run for another member's fault.

The seven others of a tensor-parallel eight, and of a group over several nodes all that stand on its other nodes.
"""

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.replicas import Replica
from vocab.states import Health, ReplicaState

CANNOT_RUN = frozenset({ReplicaState.STRANDED, ReplicaState.DRAINING, ReplicaState.FAILED, ReplicaState.CRASH_LOOP})


def is_stranded(fleet: Fleet, gpu: str) -> bool:
    """Whether nothing is wrong with a GPU but the replica that it belongs to cannot run for another one's fault."""
    living = [replica for replica in fleet.roster.on(gpu) if len(replica.gpus) > 1]
    if not living or fleet.holds_on(gpu) or fleet.health(gpu) in {Health.FAILED, Health.LOST}:
        return False
    known = fleet.gpus.get(gpu)
    if known is not None and known.node in fleet.ledger.lost:
        return False
    return any(fleet.word_of(replica) in CANNOT_RUN and _is_at_fault(fleet, replica) for replica in living)


def _is_at_fault(fleet: Fleet, replica: Replica) -> bool:
    """Whether a member of it is held, or its node is lost."""
    return not fleet.ledger.lost.isdisjoint(replica.nodes) or any(fleet.holds_on(gpu) for gpu in replica.gpus)
