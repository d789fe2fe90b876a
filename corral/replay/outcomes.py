"""What a recording shows of orders: ``action`` lines, resets, checks. The items that a node would have sent.

Nobody executes orders in a replay. An outcome belongs to the oldest order of its kind on its subject that has not
ended; without one it tells of somebody else's deed, and then it counts only if it says so (``by`` other).
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from controller.core.replicas.actions import STARTS
from vocab.lines import ActionLine
from vocab.messages import ActionItem, FenceItem
from vocab.observations import ActionSeen, AnyObservation, Check, Exit, NodeSeen, ReplicaSeen
from vocab.states import ActionKind, ActionState

STATES = {state.value: state for state in ActionState} | {"accepted": ActionState.RUNNING}  # a recording's words
AGENT = "agent"  # ``by`` of what an agent did by itself, within its bounds
STARTED = frozenset({ActionState.ORDERED, ActionState.RUNNING})
FENCES = {("fence", "done"): "placed", ("fence", "refused"): "refused", ("unfence", "done"): "expired"}
ENDS = frozenset({ActionKind.DRAIN, ActionKind.STOP_REPLICA, ActionKind.RESTART_REPLICA})
PASS, PROBLEM = "pass", "problem"


def of_action(seen: ActionSeen, orders: Iterable[ActionLine], replicas_on: Iterable[str]) -> Iterator[ActionItem]:
    """The outcome that the line tells; ``replicas_on`` are those on the GPU that it names."""
    state = STATES.get(seen.state)
    if state is None:  # a word that says nothing of an outcome
        return
    names = {seen.replica} if seen.replica else set(replicas_on)
    for order in orders:
        if order.of == seen.of and order.state in STARTED and _is_about(order, seen, names):
            yield _item(order, seen.node or "", seen.at, state, seen.error)
            return


def _is_about(order: ActionLine, seen: ActionSeen, replicas: set[str]) -> bool:
    subject = order.subject
    if subject.replica is not None:
        on_target = order.target is not None and seen.gpu in order.target.gpus
        return subject.replica in replicas or on_target
    if subject.gpu is not None:
        return subject.gpu == seen.gpu
    return subject.node == seen.node


def of_fence(seen: ActionSeen) -> Iterator[FenceItem]:
    """What an agent says of a fence of its own."""
    op = FENCES.get((seen.of, seen.state)) if seen.by == AGENT else None
    if op is not None and seen.gpu is not None and seen.node is not None:
        yield FenceItem(at=seen.at, node=seen.node, gpu=seen.gpu, op=op, why=seen.error or "recorded")


def of_resets(seen: NodeSeen, orders: Iterable[ActionLine]) -> Iterator[ActionItem]:
    """Resets that were ordered and that the inventory shows as done."""
    for order in orders:
        if order.of is ActionKind.RESET_GPU and order.state in STARTED and order.subject.gpu in seen.reset:
            yield _item(order, seen.node or "", seen.at, ActionState.DONE, "the GPU was reset")


def of_check(check: Check, orders: Iterable[ActionLine]) -> Iterator[ActionItem]:
    """How a validation of the GPU ends by a check that came after it was ordered."""
    ends = {PASS: ActionState.DONE, PROBLEM: ActionState.FAILED}
    if check.result not in ends or check.gpu is None:
        return
    words = f"{check.check}: {check.text or check.code or check.result}"
    for order in orders:
        if order.of is ActionKind.VALIDATE and order.state in STARTED and order.subject.gpu == check.gpu:
            yield _item(order, check.node or "", check.at, ends[check.result], words)
            return


def as_ordered(seen: AnyObservation, orders: Iterable[ActionLine]) -> AnyObservation:
    """An end of a replica that an order asked for says so, as its agent would; other observations are as they are."""
    if not isinstance(seen, ReplicaSeen) or (seen.exit is None and seen.phase != "stopped"):
        return seen
    exit_ = seen.exit or Exit()
    asked = any(o.subject.replica == seen.replica and _asks_to_end(o) for o in orders)
    return replace(seen, exit=replace(exit_, reason="asked")) if asked and exit_.reason is None else seen


def _asks_to_end(order: ActionLine) -> bool:
    """Whether it is waited for that a process ends; the new process of a restart is not asked to."""
    return order.of in ENDS and order.state in STARTED and order.why != STARTS


def _item(order: ActionLine, node: str, at: float, state: ActionState, error: str | None) -> ActionItem:
    return ActionItem(at=at, node=node, id=order.id, of=order.of, token=order.token, state=state, error=error)
