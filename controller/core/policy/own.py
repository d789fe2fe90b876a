"""A node speaks for itself: what it says of another node's GPU, replica or order counts for nothing.

Its token is bound to its name, and what it tells bears that name; what it tells *of* is looked at here. Who takes one
agent over must not have other nodes held, repaired or released.
"""

from collections.abc import Iterable

from controller.core.fleet.claims import CODE as CLAIMED
from controller.core.fleet.fleet import Fleet
from vocab.events import Event
from vocab.lines import ActionLine
from vocab.messages import ActionItem, ClearedItem, EventItem, FenceItem, GpuStatus, Item
from vocab.states import ActionKind


def is_own(fleet: Fleet, node: str, item: Item) -> bool:
    """Whether a record that ``node`` sent is about what is on it, as far as anybody knows."""
    match item:
        case EventItem(event=event):
            return event.code != CLAIMED and _is_on(fleet, node, gpu=event.gpu, replica=_replica(event))
        case ClearedItem(cleared=cleared):
            opened = fleet.ledger.events.get(cleared.event or "")
            if CLAIMED in {cleared.code, opened.code if opened is not None else None}:
                return False  # the controller says so, and nobody else
            return _is_on(fleet, node, gpu=cleared.gpu) and (opened is None or opened.node == node)
        case FenceItem(gpu=gpu):
            return _is_on(fleet, node, gpu=gpu)
        case ActionItem(id=key):
            action = fleet.ledger.actions.get(key)
            about = action.subject if action is not None else None
            return about is None or (
                about.node in {None, node}
                and not _is_elsewhere(action, node)
                and _is_on(fleet, node, gpu=about.gpu, replica=about.replica)
            )


def _is_elsewhere(action: ActionLine | None, node: str) -> bool:
    """Whether a unit's release, whose replica nobody lists, was another node's to do."""
    release = action if action is not None and action.of is ActionKind.RELEASE else None
    return release is not None and release.target is not None and release.target.node != node


def own(fleet: Fleet, node: str, statuses: Iterable[GpuStatus]) -> tuple[GpuStatus, ...]:
    """The readings that are of the node's own GPUs."""
    gpus = fleet.gpus  # as ``_is_on``, for what each heartbeat brings
    return tuple(each for each in statuses if (known := gpus.get(each.gpu)) is None or known.node == node)


def _replica(event: Event) -> str | None:
    named = event.fields.get("replica")
    return named if isinstance(named, str) else None


def _is_on(fleet: Fleet, node: str, *, gpu: str | None = None, replica: str | None = None) -> bool:
    known = fleet.gpus.get(gpu) if gpu is not None else None
    if known is not None and known.node != node:
        return False
    runs = fleet.roster.living.get(replica) if replica is not None else None
    return runs is None or runs.node == node or any(_is_on(fleet, node, gpu=each) for each in runs.gpus)
