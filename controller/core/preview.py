"""What an order would do, drawn from a copy of the fleet on which it was given: nothing of it is done.

``draw`` compares the fleet as it is with that copy. It names who goes and where the replacements start, what is in
flight there, the floors and budgets that decide, and how long it takes at most.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.kinds import STARTED
from controller.core.fleet.replicas import Replica
from controller.core.fleet.stimuli import Asked
from controller.core.policy import budget
from controller.core.repairs import approval
from controller.core.repairs.undo import NOT_UNDONE
from vocab.lines import ActionLine, AnyLine, Budget, HoldLine, NoteLine, Subject, Target
from vocab.states import REPAIRS, ActionKind, ActionState

GOES = (ActionKind.DRAIN, ActionKind.STOP_REPLICA)
COMES = STARTED | {ActionState.WAITING}


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A replica that would go. ``to``: where its replacement starts; without one ``waits`` says what for."""

    replica: str
    deployment: str
    where: Target
    to: Target | None = None
    waits: str | None = None
    at_once: bool = True  # its drain begins now; else once its replacement is ready, or it can be spared
    requests: int = 0  # in flight on it now
    drain_s: float = 0.0  # the longest that it takes until it has gone
    start_s: float | None = None  # how long starts of its deployment took, in the middle; None: not known


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """Ready replicas of a deployment: now, and were those that would go gone at once, before any replacement."""

    deployment: str
    ready: int
    without: int
    min_ready: int


class Preview(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="preview"):
    """What an order would lead to at once; none of it was done. ``refused``: why it would not be taken.

    Of an approval that would be refused ``ordered``, ``disrupts``, ``groups``, ``requests`` and ``floors`` say all the
    same what it takes.
    """

    order: str
    refused: str | None = None
    held: tuple[HoldLine, ...] = ()  # holds that would be placed
    lifted: tuple[HoldLine, ...] = ()
    moves: tuple[Move, ...] = ()
    stays: tuple[str, ...] = ()  # replicas that would serve on, though what they are on is held
    cancelled: tuple[ActionLine, ...] = ()
    ordered: tuple[ActionLine, ...] = ()  # repairs that would begin
    disrupts: tuple[Subject, ...] = ()
    places: dict[str, str] = {}  # NODE/INDEX of the GPUs that are named, by UUID
    groups: dict[str, tuple[str, ...]] = {}  # of those that go or are stopped: the nodes of which all members leave
    requests: int = 0  # in flight on all that would go
    floors: tuple[Floor, ...] = ()
    budgets: tuple[Budget, ...] = ()  # as they would be after it
    longest_s: float = 0.0  # until the last of it is over, if nothing has to be waited for
    not_undone: tuple[str, ...] = ()


def draw(before: Fleet, after: Fleet, asked: Asked, lines: Sequence[AnyLine], now: float) -> Preview:
    """The preview of an order that led to these lines on a copy, which ``after`` is."""
    actions = [line for line in lines if isinstance(line, ActionLine)]
    holds = [line for line in lines if isinstance(line, HoldLine)]
    begun = [action for action in actions if action.of in REPAIRS and action.state in STARTED]
    wanted = approval.named(before, asked) if asked.do == "approve" else []
    ordered, refused = begun or wanted, _refused(lines)
    disrupts = tuple(dict.fromkeys(subject for each in wanted or begun for subject in (each.subject, *each.disrupts)))
    moves = _moves(before, actions)
    struck = _replicas(before, [subject.replica for subject in disrupts])
    going = {replica.id: replica for replica in (*_replicas(before, [move.replica for move in moves]), *struck)}
    placed = tuple(hold for hold in holds if hold.op == "placed")
    lifted = tuple(hold for hold in holds if hold.op == "lifted")
    cancelled = tuple(action for action in actions if action.state is ActionState.CANCELLED)
    limits = [line.budget for line in placed if line.budget is not None]
    limits += [action.budget for action in actions if action.budget is not None]
    limits += budget.cordons_with(after, placed, now)  # of one that a hold goes over what it then is
    limits += [budget.repairs_now(after)] if begun else []
    return Preview(
        order=asked.do,
        refused=refused,
        held=placed,
        lifted=lifted,
        moves=tuple(moves),
        stays=tuple(sorted({each.id for hold in placed for each in _on(before, hold.subject)} - going.keys())),
        cancelled=cancelled,
        ordered=tuple(ordered),
        disrupts=disrupts,
        places=_places(
            before, [*(each.subject for each in (*placed, *lifted, *cancelled, *ordered)), *disrupts], moves
        ),
        groups={replica.id: replica.nodes for replica in going.values() if replica.is_group},
        requests=sum(_requests(replica) for replica in going.values()),
        floors=tuple(_floors(before, going.values())),
        budgets=tuple({each.of: each for each in limits}.values()),
        longest_s=max([move.drain_s for move in moves] + [action.ttl_s or 0.0 for action in ordered], default=0.0),
        not_undone=tuple(_whose(before, one) for one in lines if isinstance(one, NoteLine) and one.code == NOT_UNDONE),
    )


def _whose(fleet: Fleet, note: NoteLine) -> str:
    """What cannot be undone, of whom: a GPU as NODE/INDEX."""
    found = (getattr(note.subject, kind) for kind in note.subject.__struct_fields__)
    name = next((each for each in found if each is not None), "the fleet")
    return f"{_places(fleet, [note.subject], ()).get(name, name)}: {note.text}"


def _places(fleet: Fleet, subjects: Iterable[Subject], moves: Iterable[Move]) -> dict[str, str]:
    uuids = [subject.gpu for subject in subjects if subject.gpu is not None]
    uuids += [gpu for move in moves for target in (move.where, move.to) if target is not None for gpu in target.gpus]
    found = {uuid: fleet.gpus.get(uuid) for uuid in uuids}
    return {uuid: f"{gpu.node}/{gpu.identity.index}" for uuid, gpu in found.items() if gpu is not None}


def _refused(lines: Iterable[AnyLine]) -> str | None:
    for line in lines:
        if isinstance(line, HoldLine) and line.op == "refused":
            return line.reason
        if isinstance(line, NoteLine) and line.code == "refused":
            return line.text
    return None


def _moves(fleet: Fleet, actions: Sequence[ActionLine]) -> list[Move]:
    """Those that go, each with the next start of its deployment."""
    starts: dict[str | None, list[ActionLine]] = defaultdict(list)
    for action in actions:
        if action.of is ActionKind.START_REPLICA and action.state in COMES:
            starts[action.deployment].append(action)
    going = {a.subject.replica: a for a in actions if a.of in GOES and a.state in COMES}  # each with its last line
    return [_move(fleet, each, going[each.id], starts[each.deployment]) for each in _replicas(fleet, going)]


def _move(fleet: Fleet, replica: Replica, last: ActionLine, starts: list[ActionLine]) -> Move:
    start, deployment = (starts.pop(0) if starts else None), fleet.deployments.get(replica.deployment)
    times = (deployment.prestop_s, deployment.drain_s, deployment.kill_s) if deployment is not None else ()
    to = start.target if start is not None else None
    return Move(
        replica=replica.id,
        deployment=replica.deployment,
        where=Target(node=replica.node, gpus=replica.gpus, nodes=replica.places),
        to=to,
        waits=None if to is not None else start.why if start is not None else "nobody starts another",
        at_once=last.state is not ActionState.WAITING,
        requests=_requests(replica),
        drain_s=sum(times),
        start_s=_usual_start_s(fleet, replica.deployment),
    )


def _usual_start_s(fleet: Fleet, deployment: str) -> float | None:
    ledger = fleet.ledger
    starts = (ledger.actions[key] for key in ledger.starts_of.get(deployment, ()))
    took = [a.at - ledger.ordered_at[a.id] for a in starts if a.state is ActionState.DONE and a.id in ledger.ordered_at]
    return median(took) if took else None


def _floors(fleet: Fleet, going: Iterable[Replica]) -> Iterable[Floor]:
    gone = {replica.id: replica.deployment for replica in going}
    for name in sorted(set(gone.values()) & fleet.deployments.keys()):
        ready = [replica.id for replica in fleet.roster.of(name) if replica.is_ready]
        without = sum(each not in gone for each in ready)
        least = fleet.deployments[name].min_ready
        yield Floor(deployment=name, ready=len(ready), without=without, min_ready=least)


def _on(fleet: Fleet, subject: Subject) -> list[Replica]:
    return fleet.roster.on(subject.gpu) if subject.gpu is not None else fleet.roster.at(subject.node or "")


def _replicas(fleet: Fleet, names: Iterable[str | None]) -> list[Replica]:
    return [replica for name in names if (replica := fleet.roster.living.get(name or "")) is not None]


def _requests(replica: Replica) -> int:
    return replica.status.open_requests if replica.status is not None else 0
