"""The disruption set: everything that a repair stops beside the fault's own GPU, and whether that may be.

A reset takes the GPUs of the same reset group: one alone (PCIe boards, HGX H100 and later), a pair on one bridge
(NVL), all behind the switches of an HGX A100. A reboot or a power cycle takes the node. With a GPU goes all that is on
it: the replicas of its MIG instances and of its MPS clients alike. A GPU that a virtual machine holds is not
ours, but a boot ends its machine, too.
"""

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.kinds import RUNGS, STARTED, WIDE
from controller.core.fleet.nodes import Gpu
from controller.core.fleet.replicas import Replica
from controller.core.policy.policy import OWNER
from vocab.lines import ActionLine, Subject
from vocab.states import REPAIRS, ActionKind, Health

FOREIGN = "unknown_consumer"  # memory that no process of ours owns up to


def taken(fleet: Fleet, rung: ActionKind, node: str, gpus: list[str]) -> list[str]:
    """All GPUs that a repair of these takes, these first."""
    facts = fleet.node(node).facts
    if facts is None:
        return gpus
    if rung in WIDE:
        return list(dict.fromkeys([*gpus, *(gpu.identity.uuid for gpu in fleet.gpus_at(node) if gpu.listed)]))
    groups = [group for group in facts.reset_group if any(gpu in group for gpu in gpus)]
    return list(dict.fromkeys([*gpus, *(uuid for group in groups for uuid in group if _is_at(fleet, node, uuid))]))


def _is_at(fleet: Fleet, node: str, uuid: str) -> bool:
    gpu = fleet.gpus.get(uuid)
    return gpu is not None and gpu.node == node


def disrupted(fleet: Fleet, gpus: list[str]) -> tuple[Subject, ...]:
    """These GPUs and the replicas that live on them, each once."""
    found = [Subject(gpu=gpu) for gpu in gpus]
    found += [replica.subject for gpu in gpus for replica in fleet.roster.on(gpu)]
    return tuple(dict.fromkeys(found))


def in_use(fleet: Fleet, rung: ActionKind, gpus: list[str], now: float) -> list[str]:
    """Those of the GPUs of which it is not proven that nothing would be lost: work, an owner, or no news."""
    return [uuid for uuid in gpus if (gpu := fleet.gpus.get(uuid)) is not None and not is_idle(fleet, rung, gpu, now)]


def residents(fleet: Fleet, rung: ActionKind, gpu: str) -> list[Replica]:
    """The replicas on a GPU that must leave before a repair: a boot ends also what is left of a dead one."""
    return [replica for replica in fleet.roster.on(gpu) if not (rung in WIDE and replica.is_remains)]


def is_idle(fleet: Fleet, rung: ActionKind, gpu: Gpu, now: float) -> bool:
    """Whether nothing runs on a GPU and nobody else keeps it: proven by a fresh reading, or because it is lost."""
    uuid = gpu.identity.uuid
    if residents(fleet, rung, uuid) or any(hold.owner != OWNER for hold in fleet.holds_on(uuid)):
        return False
    return fleet.health(uuid) is Health.LOST or gpu.is_fresh(now) or gpu.failed_at > 0.0


def is_foreign(fleet: Fleet, gpu: str) -> bool:
    """Whether a GPU that can be read holds memory that nobody owns up to: somebody's work may be in it."""
    found = any(condition.code == FOREIGN for condition in fleet.conditions_on(Subject(gpu=gpu)))
    return found and fleet.health(gpu) is not Health.LOST


def guests(fleet: Fleet, rung: ActionKind, node: str) -> tuple[str, ...]:
    """The addresses of GPUs that virtual machines hold and that a repair takes: a boot of the node ends them."""
    facts = fleet.node(node).facts
    return facts.passed_on if rung in WIDE and facts is not None else ()


def covering(fleet: Fleet, rung: ActionKind, node: str, gpus: list[str]) -> ActionLine | None:
    """A repair under way that does for these GPUs what the rung would, or more."""
    for action in fleet.ledger.live(*REPAIRS):
        reaches = action.subject.node == node or any(
            gpu == action.subject.gpu or Subject(gpu=gpu) in action.disrupts for gpu in gpus
        )
        if action.state in STARTED and reaches and RUNGS.index(action.of) >= RUNGS.index(rung):
            return action
    return None
