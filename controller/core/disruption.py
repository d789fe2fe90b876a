"""The disruption set: everything that a repair stops beside its own GPU."""

from controller.core.fleet import Fleet
from controller.core.kinds import REPAIRS, RUNGS, STARTED, WIDE
from controller.core.policy import OWNER
from vocab.lines import ActionLine, Subject
from vocab.states import ActionKind


def taken_along(fleet: Fleet, rung: ActionKind, node: str, gpu: str) -> list[str]:
    """The other GPUs that a repair takes along."""
    facts = fleet.node(node).facts
    if facts is None:
        return []
    if rung in WIDE:
        return [identity.uuid for identity in facts.gpus if identity.uuid != gpu]
    group = next((group for group in facts.reset_group if gpu in group), ())
    return [uuid for uuid in group if uuid != gpu]


def disrupted(fleet: Fleet, gpus: list[str]) -> tuple[Subject, ...]:
    """These GPUs and the replicas that live on them, each once."""
    found = [Subject(gpu=gpu) for gpu in gpus]
    found += [replica.subject for gpu in gpus for replica in fleet.roster.on(gpu)]
    return tuple(dict.fromkeys(found))


def is_out(fleet: Fleet, gpu: str) -> bool:
    """Whether a GPU is held for a fault of its own and empty: nothing is lost if it is taken along."""
    return bool(fleet.ledger.standing(Subject(gpu=gpu), OWNER)) and not fleet.roster.on(gpu)


def covering(fleet: Fleet, rung: ActionKind, node: str, gpu: str) -> ActionLine | None:
    """A repair under way that does for this GPU what the rung would, or more."""
    for action in fleet.ledger.live(*REPAIRS):
        reaches = action.subject.node == node or Subject(gpu=gpu) in action.disrupts
        if action.state in STARTED and reaches and RUNGS.index(action.of) >= RUNGS.index(rung):
            return action
    return None
