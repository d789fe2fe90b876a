"""Replicas that units of the site run: what their node's agent may do about them, by asking systemd there.

    drain     a stop, where the node's root has named the unit and nothing else runs in it
    restart   of one that stands still, with evidence; whether a dead one starts again, its unit's own Restart= says
    release   a start, once nothing holds what it ran on: what we have stopped, we start, and nothing else

Such a drain bears its place as ``target``, and so does the release that follows it.
"""

from collections.abc import Iterator

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.names import action_id
from controller.core.fleet.replicas import Replica, is_on_bad_gpu
from controller.core.fleet.stimuli import Deployment
from controller.core.replicas.actions import draw, move, placed_anew
from vocab.lines import ActionLine, Subject, Target
from vocab.messages import Order
from vocab.states import TERMINAL_ACTIONS, ActionKind, ActionState
from vocab.units import KIND, is_allowed

STANDS_STILL = frozenset({"replica_stalled", "collective_timeout"})


def against(fleet: Fleet, replica: Replica, deed: str) -> str | None:
    """Why its node's agent may not stop or restart the unit that runs it; None if it may. ``deed``: as for people."""
    owner = replica.status.owner if replica.status is not None else None
    facts = fleet.node(replica.node).facts
    if owner is None or owner.kind != KIND or facts is None or not is_allowed(owner.name, facts.units):
        return f"it was not started by us: its owner ({owner or 'unknown'}) must {deed} it"
    beside = [other.id for other in _beside(fleet, replica) if not is_on_bad_gpu(fleet.ledger, other)]
    return f"{owner.name} also runs {', '.join(beside)}: a person must {deed} it" if beside else None


def _beside(fleet: Fleet, replica: Replica) -> list[Replica]:
    """What else the same unit runs."""
    owner = replica.status.owner if replica.status is not None else None
    others = [other for other in fleet.roster.at(replica.node) if other.observed and other.id != replica.id]
    return [o for o in others if o.status is not None and o.status.owner == owner and not o.is_dead]


def against_restart(fleet: Fleet, replica: Replica, code: str, *, witnessed: bool) -> str | None:
    """Why the unit of a replica is not restarted for this condition; None if it is."""
    if code not in STANDS_STILL:
        return "whether it starts again is said by Restart= of its unit"
    why = against(fleet, replica, "restart")
    if why is None and not witnessed:
        return "nothing but its silence speaks against it: its owner must restart it"
    return why


def place_of(replica: Replica) -> Target:
    """Where a replica is stopped, and will be started again."""
    return Target(node=replica.node, gpus=replica.gpus)


def give_back(fleet: Fleet, now: float) -> Iterator[ActionLine]:
    """Have started again what was stopped for a hold that has gone."""
    for name, key in list(fleet.ledger.units_down.items()):
        drain = fleet.ledger.actions[key]
        releases = fleet.ledger.of_subject(Subject(replica=name), ActionKind.RELEASE)
        under_way = next((one for one in releases if one.state not in TERMINAL_ACTIONS), None)
        if drain.state not in TERMINAL_ACTIONS or _is_held(fleet, drain):
            if under_way is not None:
                yield move(under_way, ActionState.CANCELLED, "it is held again", now)
        elif under_way is None:
            drawn = draw(
                fleet,
                now,
                ActionKind.RELEASE,
                action_id(ActionKind.RELEASE, drain.id, len(releases)),
                Subject(replica=name),
                state=ActionState.ORDERED,
                incident=drain.incident,
                rule=drain.rule,
                target=drain.target,
                why="nothing holds its GPUs any more: its unit is started again, if it is down by us",
            )
            line = placed_anew(fleet, drawn)
            if line is not None:
                yield line


def _is_held(fleet: Fleet, drain: ActionLine) -> bool:
    return drain.target is not None and any(fleet.holds_on(gpu) for gpu in drain.target.gpus)


def orders(fleet: Fleet, node: str) -> Iterator[Order]:
    """What a node's agent is asked to do about units now."""
    for action in (fleet.ledger.actions[key] for key in fleet.ledger.started):
        of_unit = action.of in {ActionKind.DRAIN, ActionKind.RELEASE} and action.target is not None
        if of_unit and action.target is not None and action.target.node == node:
            yield _order(fleet, action)


def _order(fleet: Fleet, action: ActionLine) -> Order:
    replica = fleet.roster.find(action.subject.replica)
    times = fleet.deployments.get(replica.deployment if replica is not None else "") or Deployment(name="")
    return Order(
        id=action.id,
        of=action.of,
        token=action.token,
        ttl_s=action.ttl_s or 0.0,
        replica=action.subject.replica,
        prestop_s=times.prestop_s,
        drain_s=times.drain_s,
    )
