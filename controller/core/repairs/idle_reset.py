"""A reset at a quiet time: a memory row that waits for one is replaced while its GPU has no work anyway.

Nothing is held or drained for it: a pending remap harms nobody. So the GPU, and all that only resets with it, must be
proven idle, in no story of its own, and level and budget must allow it; else it waits without a word until they do.
"""

from collections.abc import Iterator

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.kinds import USED_UP
from controller.core.fleet.names import action_id
from controller.core.fleet.settings import PROVEN_S, RESET_TTL_S
from controller.core.policy import budget
from controller.core.policy.policy import Leave, may_act
from controller.core.repairs.disruption import covering, disrupted, in_use, is_foreign, taken
from controller.core.replicas import owners
from controller.core.replicas.actions import draw, placed_anew
from vocab.lines import ActionLine, ConditionLine, Subject
from vocab.states import ActionKind, ActionState

CODE = "remap_pending"


def when_idle(fleet: Fleet, now: float) -> Iterator[ActionLine]:
    """Reset the idle GPUs that wait for it."""
    for subject, key in fleet.ledger.docket.conditions(CODE):
        if subject.gpu in fleet.gpus:
            yield from _reset(fleet, fleet.ledger.conditions[key], now)


def _reset(fleet: Fleet, condition: ConditionLine, now: float) -> Iterator[ActionLine]:
    gpu = condition.subject.gpu or ""
    node = fleet.gpus[gpu].node
    gpus = taken(fleet, ActionKind.RESET_GPU, node, [gpu])
    if in_use(fleet, ActionKind.RESET_GPU, gpus, now) or any(
        _has_a_story(fleet, uuid) or is_foreign(fleet, uuid) for uuid in gpus
    ):
        return
    rule = f"catalogue/{condition.code}"
    tries = [a for a in fleet.ledger.of_subject(condition.subject, ActionKind.RESET_GPU) if a.rule == rule]
    used = sum(action.state in USED_UP and action.at >= condition.since for action in tries)
    verdict = may_act(fleet, node, ActionKind.RESET_GPU, now, code=condition.code)
    if used >= fleet.settings.limits.attempts or verdict.leave is Leave.LATER:
        return
    if any(action.state is ActionState.DONE and now < action.at + PROVEN_S for action in tries):
        return  # its effect may not have shown yet
    if covering(fleet, ActionKind.RESET_GPU, node, gpus) is not None or budget.repairs(fleet) is not None:
        return
    if owners.against_repair(fleet, ActionKind.RESET_GPU, node) is not None:
        return  # a job or a pod may come there at any moment
    go = verdict.leave is Leave.GO
    drawn = draw(
        fleet,
        now,
        ActionKind.RESET_GPU,
        action_id(ActionKind.RESET_GPU, condition.id, used),
        condition.subject,
        state=ActionState.ORDERED if go else ActionState.WOULD,
        rule=rule,
        attempt=used + 1,
        disrupts=disrupted(fleet, gpus),
        ttl_s=RESET_TTL_S,
        why="a memory row waits for a reset, and the GPU is idle" if go else verdict.why,
    )
    line = placed_anew(fleet, drawn)
    if line is not None:
        yield line


def _has_a_story(fleet: Fleet, gpu: str) -> bool:
    """Whether it is held or repaired for something else, which decides then."""
    return bool(fleet.ledger.incidents_of.get(Subject(gpu=gpu))) or bool(fleet.holds_on(gpu))
