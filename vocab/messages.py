"""What agents and the controller say to each other (JSON over HTTP), and the records of the agent's spool.

Agent -> controller: ``POST /api/v1/agent/batch`` Batch -> BatchAck. At least once; the controller answers
after its commit, and the store knows each event by its id. Controller -> agent:
``GET /api/v1/agent/desired?node=NAME&generation=N`` answers Desired once its generation is not N (long
poll). Durations are seconds on the receiver's monotonic clock.
"""

from typing import Any

import msgspec

from vocab.events import Cleared, Event
from vocab.observations import Exit, GpuIdentity, Member, Owner
from vocab.readings import Readings
from vocab.states import ActionKind, ActionState, Level


class EventItem(msgspec.Struct, frozen=True, tag_field="item", tag="event"):
    """An event to store, or a new revision of one."""

    event: Event


class ClearedItem(msgspec.Struct, frozen=True, tag_field="item", tag="cleared"):
    """A signal that returned."""

    cleared: Cleared


class FenceItem(msgspec.Struct, frozen=True, kw_only=True, tag_field="item", tag="fence"):
    """The agent fenced a GPU by itself, or ended such a fence."""

    at: float
    node: str
    gpu: str
    op: str  # placed, expired, replaced or refused
    event: str | None = None
    why: str


class ActionItem(msgspec.Struct, frozen=True, kw_only=True, tag_field="item", tag="action"):
    """What became of an order."""

    at: float
    node: str
    id: str
    of: ActionKind
    token: str
    state: ActionState
    gpu: str | None = None
    replica: str | None = None
    error: str | None = None


Item = EventItem | ClearedItem | FenceItem | ActionItem


class Sequenced(msgspec.Struct, frozen=True):
    """A spool record: its position (rises by one for the life of the node's spool) and what it holds."""

    position: int
    item: Item


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a node is; sent whole when it changes and with the first batch of a connection."""

    node: str
    boot_id: str
    boot_at: float | None = None
    booting: bool = False  # its start is not over: it takes no work yet
    virtual: bool = False
    level: Level = Level.OBSERVE
    version: str = ""
    driver: str | None = None
    cuda: str | None = None  # the newest that the driver runs
    address: str = ""  # http://host:port of the agent
    gpus: tuple[GpuIdentity, ...] = ()
    reset_group: tuple[tuple[str, ...], ...] = ()  # GPUs that only reset together
    islands: tuple[tuple[str, ...], ...] = ()  # GPUs that reach each other over NVLink; empty: not known
    passed_on: tuple[str, ...] = ()  # addresses of GPUs that virtual machines hold
    period_s: float = 1.0
    unknown_because: str | None = None  # why no GPU can be read, if none can
    remembers_since: float | None = None  # its own clock; of what it opened before it knows nothing
    abilities: tuple[ActionKind, ...] | None = None  # the repairs that it has the means for; None: it did not say
    units: tuple[str, ...] = ()  # of the site, that it may stop and start: by name or template


class GpuStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):  # in no cycle
    """The latest readings of one GPU for the page; ``error`` when it cannot be read."""

    gpu: str
    at: float
    readings: Readings | None = None
    error: str | None = None


KV_STEP = 0.05  # the list is sent anew when it changes, and the cache does all the time


def kv_step(ratio: float | None) -> float | None:
    """A share of the KV cache as it is told; None is not known."""
    return None if ratio is None else round(round(ratio / KV_STEP) * KV_STEP, 2)


class ReplicaStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A replica as its agent sees it."""

    replica: str
    deployment: str
    members: tuple[Member, ...] = ()
    phase: str = "starting"  # starting, ready, draining or stopped
    ready: bool = False
    admitting: bool = False
    stepping: bool = True
    running: int = 0
    waiting: int = 0
    open_requests: int = 0
    kv_ratio: float | None = None  # of its KV cache in use, in steps of KV_STEP
    url: str = ""
    pid: int | None = None
    attempt: int = 1
    token: str = ""  # of the order that this phase answers
    exit: Exit | None = None
    observed: bool = False  # found, not started by us: it is never signalled
    owner: Owner | None = None  # of an observed one
    serves: bool = True  # False: GPU work of others that is no server, as training
    engine: str = ""
    model: str = ""  # as an observed one calls it itself
    healthy: bool = True  # its door answers
    leftovers: tuple[int, ...] = ()  # processes of its last life that still live or own memory
    released: str = ""  # why it is empty though no exit was seen: of a drain that has ended


class Batch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One report of a node. Empty lists and None mean *unchanged*, not *none*."""

    node: str
    boot_id: str
    at: float
    session: str  # new at each start of the agent
    generation: int = 0  # of the Desired that the node has taken
    facts: NodeFacts | None = None
    items: tuple[Sequenced, ...] = ()
    gpus: tuple[GpuStatus, ...] = ()
    replicas: tuple[ReplicaStatus, ...] | None = None  # the whole list when given
    paused: bool = False  # the node's PAUSE file stands
    spool_dropped: int = 0


class BatchAck(msgspec.Struct, frozen=True, kw_only=True):
    """Stored. ``position``: the highest spool position that is on the controller's disk.

    ``heartbeat_s``: how often to report when nothing happens; what happens is reported at once.
    """

    position: int
    generation: int
    want_facts: bool = False
    heartbeat_s: float = 2.0


class ReplicaSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A replica that a node should have, and in which phase.

    ``members`` are all of it, by rank, on whatever node: each agent starts one process for those of its own node.
    ``leader``: of a group over several nodes the address of the first, where its processes meet at ``leader_port``.
    """

    replica: str
    deployment: str
    members: tuple[Member, ...]
    model: str
    engine: str = "torch"
    phase: str = "run"  # run, drain (stop admitting, let requests end, exit) or stop
    token: str = ""
    prestop_s: float = 0.0
    drain_s: float = 120.0
    kill_s: float = 10.0
    options: dict[str, Any] = {}
    leader: str = ""
    leader_port: int = 0

    @property
    def nodes(self) -> tuple[str, ...]:
        """Its nodes by rank; the first leads."""
        return tuple(dict.fromkeys(member.node for member in self.members))


class HoldSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A hold that stands on a GPU of the node (or on the node: ``gpu`` None)."""

    id: str
    gpu: str | None
    owner: str
    reason: str


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A harmful act to do once: refused if its token is older than one seen, or after ``ttl_s``."""

    id: str
    of: ActionKind
    token: str
    ttl_s: float
    gpu: str | None = None
    replica: str | None = None
    gpus: tuple[str, ...] = ()  # the disruption set
    attempt: int = 1
    prestop_s: float = 0.0  # of the drain of a replica that a unit of the site runs: as of a ReplicaSpec
    drain_s: float = 0.0


class EvidenceFile(msgspec.Struct, frozen=True):
    """A piece of what an agent has taken of a fault."""

    name: str
    bytes: int


class EvidenceList(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent has taken for an order: ``GET /api/v1/evidence/ORDER``."""

    order: str
    files: tuple[EvidenceFile, ...]


class Desired(msgspec.Struct, frozen=True, kw_only=True):
    """What a node should run, hold and do."""

    node: str
    epoch: int
    generation: int
    level: Level = Level.OBSERVE
    paused: bool = False
    holds: tuple[HoldSpec, ...] = ()
    replicas: tuple[ReplicaSpec, ...] = ()
    orders: tuple[Order, ...] = ()
    healthy: dict[str, float] = {}  # GPU -> when a person last called it healthy, on the controller's clock
    shadowed: tuple[str, ...] = ()  # codes for which nothing is fenced: their rules are in shadow
