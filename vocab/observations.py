"""Observations: one raw input at one time. The lines of a recording, and what sources give to probes.

One frozen type a kind, tagged by ``obs``; the forms are those of a recording (docs/api.md).
``at`` is seconds since the epoch. Errors of NVML are written without their prefix (``GPU_IS_LOST``).
"""

from typing import Annotated, Any

import msgspec

from vocab.events import Mig
from vocab.readings import LinkReadings, Readings

MOST_REPLICAS = 100_000  # of a deployment; a wish beyond it is a slip of the pen, and each wish is an action


class Observation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="obs"):
    """Base: when, and on which node (None where the observation is of the fleet)."""

    at: float
    node: str | None = None


class GpuIdentity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A GPU as the inventory lists it; ``pci`` is ``dddd:bb:dd`` in lower case."""

    uuid: str
    index: int
    pci: str
    serial: str | None = None
    name: str | None = None
    mig: tuple[dict[str, Any], ...] = ()
    vbios: str | None = None  # versions of the board's own programs
    inforom: str | None = None
    gsp: str | None = None
    numa: int | None = None  # the host's memory that is nearest to it
    fabric: str | None = None  # the NVLink fabric over nodes that it is registered in, and its clique there


class PciDevice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One device of the PCI bus, with the kernel driver bound to it."""

    pci: str
    class_: str | None = msgspec.field(default=None, name="class")
    driver: str | None = None

    @property
    def is_passed_on(self) -> bool:
        """Whether a driver holds it for a virtual machine."""
        return self.driver in PASSED_ON


PASSED_ON = frozenset({"vfio-pci", "pci-stub", "xen-pciback"})


class NodeSeen(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="node"):
    """The node's inventory; a new ``boot_id`` is a reboot, a GPU left out is missing."""

    boot_id: str
    boot_at: float | None = None
    driver: str | None = None
    library: str | None = None
    cuda: str | None = None  # the newest that the driver runs, like 12.7
    virtual: bool = False
    period_s: float | None = None
    gpus: tuple[GpuIdentity, ...] = ()
    expected_gpus: int | None = None
    pci_devices: tuple[PciDevice, ...] | None = None
    reset: tuple[str, ...] = ()
    booting: bool = False


class KernelRecord(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="kernel"):
    """One record of the kernel log, or an error of reading it."""

    source: str = "kmsg"  # kmsg, dmesg, syslog or journal
    line: str | None = None
    error: str | None = None  # EPIPE, EAGAIN, EINVAL, EOF or CURSOR_GONE
    seq: int | None = None
    kernel_s: float | None = None
    facility: int | None = None
    backlog: bool = False


class GpuProcess(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A process that the driver lists on a GPU."""

    pid: int
    used_bytes: int | None = None


class GpuSample(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="gpu"):
    """One read of one GPU (named by one of ``gpu``, ``index``, ``pci``); ``error`` when the whole read failed."""

    gpu: str | None = None
    index: int | None = None
    pci: str | None = None
    readings: Readings | None = None
    errors: dict[str, str] = {}
    links: dict[str, LinkReadings] = {}
    link_errors: dict[str, dict[str, str]] = {}
    instances: dict[str, Readings] = {}
    processes: tuple[GpuProcess, ...] | None = None
    error: str | None = None
    source: str | None = None


class DriverCall(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="call"):
    """A driver call that started, returned or failed; ``gpu`` None is node-wide."""

    gpu: str | None = None
    call: str = ""
    state: str = "started"
    error: str | None = None
    pid: int | None = None
    stacks: str | None = None  # where the threads of its process stand, once it hangs


class SourceState(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="source"):
    """A source of readings went up, down or became degraded."""

    source: str
    state: str  # up, down or degraded
    remote: bool = False
    error: str | None = None
    unsupported: tuple[str, ...] = ()


class Check(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="check"):
    """The outcome of an active check; ``result`` pass, problem or unknown."""

    check: str
    gpu: str | None = None
    replica: str | None = None
    result: str = "unknown"
    code: str | None = None
    text: str | None = None
    fatal: bool | None = None
    readings: dict[str, Any] | None = None
    drill: bool = False  # it may tell of a value that was put there on purpose


class HostSample(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="host"):
    """Readings of the host and of its network devices."""

    readings: dict[str, Any] = {}
    devices: dict[str, dict[str, Any]] = {}


class ProcessSeen(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="process"):
    """A process of interest; ``state`` R, S, D, Z or gone."""

    pid: int
    start_s: float | None = None
    parent: int | None = None
    name: str | None = None
    state: str | None = None
    replica: str | None = None
    used_bytes: dict[str, int] = {}


class ServiceSeen(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="service"):
    """A systemd unit."""

    unit: str
    active: bool | str = True
    restarts: int | None = None
    started_at: float | str | None = None  # any mark that changes with each start


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One GPU (of a MIG slice the parent) that a replica runs on."""

    node: str
    gpu: str
    rank: int = 0
    mig: Mig | None = None


class Owner(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who runs what Corral found and did not start: ``kind`` systemd-unit, kubernetes, container, slurm or process.

    ``name`` is the unit, the pod, the container or the job; of a plain process its program. ``uid`` is the user's.
    """

    kind: str
    name: str
    uid: int | None = None

    def __str__(self) -> str:
        user = "" if self.uid is None else f", uid {self.uid}"
        return f"{self.kind} {self.name}{user}"


class Exit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a replica's process ended."""

    code: int | None = None
    signal: int | None = None
    reason: str | None = None
    text: str | None = None


class ReplicaSeen(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="replica"):
    """A replica's beat and surroundings; None is *not known this time*."""

    replica: str
    deployment: str | None = None
    members: tuple[Member, ...] = ()
    gpus: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    phase: str | None = None  # starting, ready, draining or stopped
    observed: bool = False
    owner: Owner | None = None  # of an observed one
    serves: bool = True  # False: GPU work of others that is no server, as training
    engine: str | None = None
    model: str | None = None  # as it calls it itself
    ready: bool | None = None
    running: int | None = None
    waiting: int | None = None
    oldest_wait_s: float | None = None
    step: int | None = None
    tokens: int | None = None
    p999_step_s: float | None = None
    kv_ratio: float | None = None
    open_requests: int | None = None
    health: int | str | None = None
    error: str | int | None = None
    visible: str | None = None
    requests_ok: int | None = None
    requests_failed: int | None = None
    requests_timed_out: int | None = None
    over_floor: float | None = None  # times what its hardware allows that its steps took; comparable between equals
    over_usual: float | None = None  # times what its own steps used to take
    exit: Exit | None = None


class LogLine(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="log"):
    """A line of a replica's own log."""

    replica: str
    rank: int | None = None
    line: str = ""


class ActionSeen(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="action"):
    """What became of an order: accepted, done, failed or refused."""

    of: str
    gpu: str | None = None
    replica: str | None = None
    state: str = "done"
    error: str | None = None
    by: str = "corral"


class Restart(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="restart"):
    """A process of ours restarted; ``kept``: its disk survived."""

    of: str
    kept: bool = True


class ClockStep(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="clock"):
    """The node's wall clock jumped, or the node stood still."""

    step_s: float | None = None
    pause_s: float | None = None


class Report(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="report"):
    """A heartbeat of the node reached the controller."""


class Reach(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="reach"):
    """Whether ``by`` can reach node ``of``."""

    of: str
    by: str
    ok: bool


class Uplink(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="uplink"):
    """The way from a node to the controller: up, down or lossy (stored, answer lost)."""

    state: str


class DriverEvent(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="driver_event"):
    """An event that NVML or DCGM pushed: xid, ecc, clock, recovery_action or other."""

    source: str = "nvml"
    gpu: str | None = None
    index: int | None = None
    pci: str | None = None
    type: str = "other"
    data: int | None = None
    mig: Mig | None = None
    error: str | None = None
    drill: bool = False  # it may tell of a value that was put there on purpose


class FleetShape(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="fleet"):
    """Pools (with their nodes and level) and failure domains."""

    pools: dict[str, dict[str, Any]] = {}
    domains: dict[str, tuple[str, ...]] = {}


class DeploymentSeen(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="deployment"):
    """A model to be kept running."""

    deployment: str
    replicas: Annotated[int, msgspec.Meta(ge=0, le=MOST_REPLICAS)] = 1
    gpus_per_replica: int = 1
    nodes_per_replica: Annotated[int, msgspec.Meta(ge=1)] = 1  # more: a replica is a group over so many nodes
    island: str = "preferred"  # or required: all its GPUs of a node in one NVLink island
    min_ready: int | None = None
    gpus: tuple[str, ...] = ()
    managed_by: str = "corral"
    engine: str | None = None
    stop: dict[str, float] = {}


class Operator(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="operator"):
    """Something that a person orders. ``force`` of a ``drain`` also ends one that is under way."""

    do: str
    gpu: str | None = None
    deployment: str | None = None
    incident: str | None = None
    by: str = ""
    owner: str = "operator"
    reason: str = ""
    force: bool = False


class End(Observation, frozen=True, kw_only=True, omit_defaults=True, tag="end"):
    """Time goes on to here."""


AnyObservation = (
    NodeSeen | KernelRecord | GpuSample | DriverCall | SourceState | Check | HostSample | ProcessSeen
    | ServiceSeen | ReplicaSeen | LogLine | ActionSeen | Restart | ClockStep | Report | Reach | Uplink
    | DriverEvent | FleetShape | DeploymentSeen | Operator | End
)  # fmt: skip
