"""The fleet as the core sees it, frozen: what the API, the page and the exporter show.

Nodes and GPUs are drawn anew with each heartbeat, and are in no cycle: the collector need not know of them (``gc``).
"""

import msgspec

from controller.core.fleet.precision import Precision
from vocab.lines import ActionLine, Budget, ConditionLine, HoldLine, IncidentLine, NoteLine
from vocab.observations import Owner
from vocab.readings import Readings


class GpuView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A GPU. ``state`` is the one word; ``replica`` the one that is placed on it; ``error`` why it cannot be read.

    ``activity``: what it does with its time, in words (vocab.activity); None while its counters do not say.
    """

    uuid: str
    node: str
    index: int
    name: str | None
    pci: str
    state: str
    health: str
    phase: str
    fresh: bool
    placeable: bool
    stranded: bool
    holds: tuple[HoldLine, ...] = ()
    conditions: tuple[ConditionLine, ...] = ()
    incidents: tuple[str, ...] = ()
    readings: Readings | None = None
    activity: str | None = None
    error: str | None = None
    replica: str | None = None
    used_by: tuple[str, ...] = ()  # owners of what runs there and is not Corral's


class NodeView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node. ``state`` live, unknown, lost or removed; ``seen_at`` its last report to this controller.

    ``others``: who else is at work on it, in the words of those that manage its work.
    """

    node: str
    virtual: bool
    level: str
    state: str
    boot_id: str
    driver: str | None
    version: str
    address: str
    paused: bool
    unknown_because: str | None
    seen_at: float | None
    holds: tuple[HoldLine, ...] = ()
    conditions: tuple[ConditionLine, ...] = ()
    others: tuple[str, ...] = ()
    gpus: tuple[GpuView, ...] = ()


class ReplicaView(msgspec.Struct, frozen=True, kw_only=True):
    """A replica that runs or should run; one that has ended is not shown."""

    replica: str
    deployment: str
    state: str
    url: str
    node: str
    gpus: tuple[str, ...]
    admitting: bool
    ready: bool
    model: str
    running: int = 0
    waiting: int = 0
    open_requests: int = 0
    kv_ratio: float | None = None  # of its KV cache in use
    attempt: int = 1
    pid: int | None = None
    observed: bool = False  # found, and not ours: Corral never signals it
    owner: str = ""  # of an observed one
    serves: bool = True  # False: others' GPU work that is no server
    engine: str = ""
    nodes: tuple[str, ...] = ()  # of a group over several nodes: all of them; ``node`` leads it


class DeploymentView(msgspec.Struct, frozen=True, kw_only=True):
    """A deployment: ``wanted`` replicas declared, ``replicas`` that exist, ``ready`` that admit requests.

    ``short_because``: why fewer are ready than wanted, if they are.
    """

    name: str
    model: str
    engine: str
    wanted: int
    replicas: int
    ready: int
    min_ready: int
    gpus_per_replica: int
    nodes_per_replica: int = 1
    short_because: str | None = None


class PauseView(msgspec.Struct, frozen=True, kw_only=True):
    """A pause that stands. ``scope``: fleet, pool, node, or file (of a node); ``name``: which pool or node."""

    scope: str
    name: str | None = None
    since: float | None = None  # None: a file's age is not known here
    why: str


class OwnerOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What a manager or owner is asked: to close or open ``gpu`` or ``node``, or to end ``replica``. At least once.

    ``action`` is a drain (close, end) or a release (open); ``hold`` the one for which a place is closed.
    """

    by: str
    action: ActionLine
    node: str
    gpu: str | None = None
    hold: str = ""
    replica: str | None = None
    deployment: str | None = None
    owner: Owner | None = None
    gpus: tuple[str, ...] = ()


class ManagerView(msgspec.Struct, frozen=True, kw_only=True):
    """A manager of others' work: how many nodes are its own, on how many something is closed or others are at work."""

    name: str
    ok: bool
    why: str
    nodes: int
    closed: int
    others: int


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Everything at one moment. ``actions`` are those not ended; the waiting ones are among them."""

    paused: bool  # all of it
    pauses: tuple[PauseView, ...] = ()  # all that stand, of parts too
    settled: bool  # the start is over: harmful acts are possible
    nodes: tuple[NodeView, ...]
    deployments: tuple[DeploymentView, ...]
    replicas: tuple[ReplicaView, ...]
    incidents: tuple[IncidentLine, ...]  # open ones
    began: dict[str, float] = {}  # when each of them was opened: its line says when it last changed
    conditions: tuple[ConditionLine, ...]  # open ones
    holds: tuple[HoldLine, ...]  # standing ones
    actions: tuple[ActionLine, ...]
    halted: dict[str, str] = {}  # open incidents on which nothing goes on by itself, and why
    demoted: tuple[NoteLine, ...] = ()  # rules that have fallen back to shadow
    policy: str = ""  # the version in force
    shadowed: dict[str, str] = {}  # rules that are not as they were adopted, and how they differ, by code
    managers: tuple[ManagerView, ...] = ()
    precision: tuple[Precision, ...] = ()  # of the rules that decided anything lately
    budgets: dict[str, Budget] = {}  # what is used of each, by name
    counts: dict[str, int]  # in GPUs: total, in_service, free, unhealthy, stranded, overcommitted
