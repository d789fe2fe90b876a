"""The forms of the interface that are not words of ``vocab`` or views of the Core already."""

from typing import Annotated, Any, Literal

import msgspec

from controller.api.paging import PageQuery
from controller.core.fleet.views import DeploymentView, ManagerView, NodeView, PauseView, ReplicaView
from vocab.events import Severity
from vocab.lines import ActionLine, AnyLine, IncidentLine, Subject
from vocab.states import ActionKind, NodeState

Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the page and ``corral status`` show. ``seq``: the last change that is in it."""

    nodes: tuple[NodeView, ...]
    deployments: tuple[DeploymentView, ...]
    replicas: tuple[ReplicaView, ...]
    incidents_open: tuple[IncidentLine, ...]
    incidents_began: dict[str, float] = {}  # when each of them was opened; its `at` is that of its last change
    halted: dict[str, str] = {}  # open incidents on which nothing goes on by itself, and why
    actions_waiting: tuple[ActionLine, ...]
    actions_paused: tuple[ActionLine, ...] = ()  # what would be done, or would wait, were it not for a pause
    repairs_running: tuple[ActionLine, ...] = ()
    counts: dict[str, int]
    paused: bool
    pauses: tuple[PauseView, ...] = ()  # of everything, pools, nodes, and by files on nodes
    settled: bool
    seq: int
    managers: tuple[ManagerView, ...] = ()  # of others' work: Slurm, Kubernetes
    controller: str = ""  # that answers, and whether it decides


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """An incident and its lines in causal order.

    ``place``: what it is about, a GPU as NODE/INDEX where it is known; ``halted``: why it goes no further by itself;
    ``runbook``: the page of this controller that says what to do.
    """

    incident: IncidentLine
    lines: list[AnyLine]
    place: str
    halted: str | None
    runbook: str


class EventQuery(PageQuery, frozen=True, kw_only=True):
    """Events that match everything given: ``severity`` this one or worse, ``since`` and ``until`` seconds (UTC)."""

    gpu: str | None = None
    node: str | None = None
    code: str | None = None
    severity: Severity | None = None
    since: float | None = None
    until: float | None = None


class IncidentQuery(PageQuery, frozen=True, kw_only=True):
    """Open or closed incidents; ``severity`` this one or worse; ``gpu``, ``node``: what they are about."""

    state: Literal["open", "finished"] | None = None
    code: str | None = None
    severity: Severity | None = None
    gpu: str | None = None
    node: str | None = None


class ActionQuery(PageQuery, frozen=True, kw_only=True):
    """Actions under way or finished, of one kind, about one thing, for one incident."""

    state: Literal["open", "finished"] | None = None
    of: ActionKind | None = None
    gpu: str | None = None
    node: str | None = None
    replica: str | None = None
    incident: str | None = None


class NodeQuery(PageQuery, frozen=True, kw_only=True):
    """Nodes in one state."""

    state: NodeState | None = None


class GpuQuery(PageQuery, frozen=True, kw_only=True):
    """GPUs of one node, or those for which one word is shown."""

    node: str | None = None
    state: str | None = None


class HoldQuery(PageQuery, frozen=True, kw_only=True):
    """Holds of one owner, or on one thing."""

    owner: str | None = None
    gpu: str | None = None
    node: str | None = None


class ReplicaQuery(PageQuery, frozen=True, kw_only=True):
    """Replicas of one deployment, on one node, in one state."""

    deployment: str | None = None
    node: str | None = None
    state: str | None = None


class AuditQuery(PageQuery, frozen=True, kw_only=True):
    """Orders of one kind (``hold``, ``lift``, ``pause`` …)."""

    act: str | None = None


class WatchQuery(msgspec.Struct, frozen=True, kw_only=True):
    """``after``: a seq to go on from, for readers that cannot send ``Last-Event-ID``."""

    after: Annotated[int, msgspec.Meta(ge=0)] | None = None


class DesiredQuery(msgspec.Struct, frozen=True, kw_only=True):
    """``generation``: the one that the node has; ``wait_s``: how long to wait for a newer one."""

    node: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    generation: Annotated[int, msgspec.Meta(ge=0)] = 0
    wait_s: Annotated[float, msgspec.Meta(ge=0, le=25)] = 25.0


class HoldBody(msgspec.Struct, frozen=True, kw_only=True):
    """A hold to place on a GPU or a node. ``owner`` lets a program keep its holds apart from people's.

    ``force``: also where a limit of the policy has no room for it.
    """

    subject: Subject
    reason: Reason
    owner: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9._-]{0,62}$")] = "operator"
    force: bool = False


class LiftBody(msgspec.Struct, frozen=True, kw_only=True):
    """Why a hold is lifted; ``force`` for one that somebody else placed."""

    reason: Reason
    force: bool = False


class ReasonBody(msgspec.Struct, frozen=True, kw_only=True):
    """Why."""

    reason: Reason


class PauseBody(msgspec.Struct, frozen=True, kw_only=True):
    """What to pause, or to let act again: one pool, one node, or (neither named) everything; and why."""

    reason: Reason
    pool: str | None = None
    node: str | None = None


class CancelBody(msgspec.Struct, frozen=True, kw_only=True):
    """The id of an unfinished action that is to be called off."""

    action: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    reason: Reason


class ApprovalBody(msgspec.Struct, frozen=True, kw_only=True):
    """The id of a waiting action that may go on; ``force``: also if it leaves a deployment under its floor."""

    action: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    reason: Reason
    force: bool = False


class DrainBody(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU, node or replica to be held, replaced elsewhere and drained.

    ``force``: also where a limit of the policy has no room for the hold. ``now``: a drain of it that is under way ends
    now, and what is open there with an error.
    """

    subject: Subject
    reason: Reason
    force: bool = False
    now: bool = False


class ReleaseBody(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU to be put back to service, whatever the policy says of it."""

    subject: Subject
    reason: Reason


class OrderQuery(msgspec.Struct, frozen=True, kw_only=True):
    """``dry_run``: only say what the order would lead to; the answer is a ``Preview`` and nothing is done."""

    dry_run: bool = False


class UndoBody(msgspec.Struct, frozen=True, kw_only=True):
    """How far back, in seconds, and of which rule (a code) if not of all, what automation did is taken back."""

    since_s: Annotated[float, msgspec.Meta(gt=0, le=31_536_000)]
    reason: Reason
    rule: str | None = None


class Ordered(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="ordered"):
    """What an order led to at once; what follows comes by ``/api/v1/watch``."""

    outcome: str
    lines: list[AnyLine]


class ReachBody(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes a gateway reaches. ``by``: its machine; on a GPU node that node, which then is the observer."""

    by: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    nodes: dict[str, bool]


class ReachAck(msgspec.Struct, frozen=True, kw_only=True):
    """``noted``: the silent nodes among them, of which it was taken down."""

    noted: list[str]


class TargetGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One group of Prometheus' HTTP service discovery."""

    targets: list[str]
    labels: dict[str, str]


Json = dict[str, Any]
