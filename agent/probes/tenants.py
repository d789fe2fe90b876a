"""Who lives on this node's GPUs: its replicas, their processes, what they last said. What replica probes share.

A *life* of a replica is one run of its engine: another set of processes, a start after an end, or a counter that
fell begins a new one. What is not known this time (None) leaves what was known as it is.
"""

from collections.abc import Iterator, Sequence

import msgspec

from vocab.catalogue.exits import BY_REASON
from vocab.observations import ClockStep, Exit, GpuSample, Member, ProcessSeen, ReplicaSeen
from vocab.readings import Readings

LEAVING = frozenset({"draining", "stopped"})  # phases in which an end is what was asked for
# A supervisor's words for an end.
REAPED = frozenset({"asked", "drained", "cut off", "killed", "crashed", "exit unseen", "crash_loop", *BY_REASON})
ASKED = frozenset({"asked", "drained", "cut off", "killed", "stopped"})  # reasons of an end that somebody ordered
DEAD_STATES = frozenset({"gone", "Z", "X"})  # a zombie has ended: it only waits to be counted by its parent
FRESH_S = 65.0  # readings come each second live, and each half minute in recordings
MOST_PROCESSES = 4096


class Process(msgspec.Struct):
    """A process as last seen (``at``, of the judge's clock); ``used``: bytes by GPU, as the driver or host told."""

    at: float
    state: str | None = None
    replica: str | None = None
    start_s: float | None = None
    used: dict[str, int] = {}

    @property
    def is_alive(self) -> bool:
        """Whether it was last seen to live, able to do something or not."""
        return self.state is not None and self.state not in DEAD_STATES


class Listing(msgspec.Struct):
    """What one GPU last said: readings, error, and the processes on it (None: not told). Of the judge's clock."""

    at: float
    readings: Readings | None = None
    error: str | None = None
    processes: dict[int, int | None] | None = None
    told_at: float | None = None  # when the processes were told


class Tenant(msgspec.Struct):
    """One replica. ``ended_at``: when this life ended; ``moved_at``: when a counter of work last moved."""

    replica: str
    deployment: str | None = None
    members: tuple[Member, ...] = ()
    pids: tuple[int, ...] = ()
    phase: str | None = None
    observed: bool = False
    was_ready: bool = False
    began_at: float = 0.0
    ended_at: float | None = None
    asked: bool = False  # this life's end was ordered
    is_reaped: bool = False  # whoever told its end has seen its whole session end
    step: int | None = None
    tokens: int | None = None
    ok: int | None = None
    moved_at: float | None = None

    @property
    def gpus(self) -> tuple[str, ...]:
        """The UUIDs of its GPUs, in the order of its ranks."""
        return tuple(dict.fromkeys(member.gpu for member in self.members))

    def fields(self) -> dict[str, object]:
        """What every event about it carries."""
        return {"replica": self.replica, "deployment": self.deployment, "gpus": list(self.gpus)}


class Look(msgspec.Struct, frozen=True):
    """One look at one replica, and what it changes. None: cannot be told this time."""

    tenant: Tenant
    seen: ReplicaSeen
    moved: bool | None  # whether a counter of work moved since it was last known
    has_work: bool | None
    is_new_life: bool
    before: Tenant  # as it was before this look


class Tenants(msgspec.Struct):
    """All replicas of the node by name, the processes of interest by pid, the GPUs by UUID."""

    named: dict[str, Tenant] = {}
    processes: dict[int, Process] = {}
    gpus: dict[str, Listing] = {}

    def look(self, seen: ReplicaSeen, now: float) -> Look:
        """Take a look at a replica in."""
        tenant = self.named.setdefault(seen.replica, Tenant(seen.replica, began_at=now))
        before = msgspec.structs.replace(tenant)
        new_life = _is_new_life(tenant, seen)
        if new_life:
            tenant.began_at, tenant.ended_at, tenant.asked, tenant.was_ready = now, None, False, False
            tenant.is_reaped = False
            tenant.step = tenant.tokens = tenant.ok = tenant.moved_at = None
        moved = _follow(tenant, seen, now)
        tenant.deployment = seen.deployment or tenant.deployment
        tenant.members = members_of(seen) or tenant.members
        tenant.pids = seen.pids or tenant.pids
        tenant.observed = seen.observed or tenant.observed
        tenant.phase = seen.phase or ("ready" if seen.ready else tenant.phase)
        tenant.asked = tenant.asked or (tenant.ended_at is None and seen.phase == "draining")
        tenant.was_ready = tenant.was_ready or bool(seen.ready) or seen.phase == "ready"
        return Look(tenant, seen, moved, work_of(seen), new_life, before)

    def meet(self, seen: ProcessSeen, now: float) -> Tenant | None:
        """Take a look at a process in; whose it is, if it is a replica's."""
        known = self.processes.pop(seen.pid, None)
        if known is None or (seen.start_s is not None and known.start_s not in {None, seen.start_s}):
            known = Process(now)
        owner = self.owner(seen.pid, seen.replica or known.replica)
        known.at, known.state = now, seen.state or known.state
        known.start_s = known.start_s if seen.start_s is None else seen.start_s
        known.replica = owner.replica if owner else seen.replica
        known.used = dict(seen.used_bytes) if seen.used_bytes else {} if not known.is_alive else known.used
        self.processes[seen.pid] = known
        if len(self.processes) > MOST_PROCESSES:
            del self.processes[next(iter(self.processes))]
        return owner

    def sample(self, gpu: str, sample: GpuSample, now: float) -> Listing:
        """Take a read of a GPU in."""
        listing = self.gpus.setdefault(gpu, Listing(now))
        listing.at, listing.error = now, sample.error
        listing.readings = sample.readings or (None if sample.error else listing.readings)
        if sample.processes is not None:
            listing.processes = {process.pid: process.used_bytes for process in sample.processes}
            listing.told_at = now
        return listing

    def shift(self, step: ClockStep) -> None:
        """The whole node stood still for a while: nobody could have moved."""
        for tenant in self.named.values() if step.pause_s else ():
            if tenant.moved_at is not None:
                tenant.moved_at += step.pause_s or 0.0

    def owner(self, pid: int, replica: str | None = None) -> Tenant | None:
        """Whose process it is."""
        if replica is not None and replica in self.named:
            return self.named[replica]
        return next((tenant for tenant in self.named.values() if pid in tenant.pids), None)

    def on(self, gpu: str) -> Iterator[Tenant]:
        """The replicas that have a member on a GPU."""
        return (tenant for tenant in self.named.values() if gpu in tenant.gpus)

    def pids_of(self, tenant: Tenant) -> list[int]:
        """All processes that are known to be a replica's, its leader first."""
        others = [pid for pid, process in self.processes.items() if process.replica == tenant.replica]
        return list(dict.fromkeys((*tenant.pids, *others)))

    def listing(self, gpu: str, now: float) -> Listing | None:
        """What a GPU last said, if that is not too old."""
        known = self.gpus.get(gpu)
        return known if known is not None and now - known.at <= FRESH_S else None


def members_of(seen: ReplicaSeen) -> tuple[Member, ...]:
    """The members that a look names, with a rank each."""
    if not seen.members:
        return tuple(Member(node=seen.node or "", gpu=gpu, rank=rank) for rank, gpu in enumerate(seen.gpus))
    if len(seen.members) > 1 and len({member.rank for member in seen.members}) == 1:
        return tuple(msgspec.structs.replace(member, rank=rank) for rank, member in enumerate(seen.members))
    return seen.members


def work_of(seen: ReplicaSeen) -> bool | None:
    """Whether a replica has something to do. The count of open requests is ours and wins over the engine's gauges."""
    if seen.open_requests is not None:
        return seen.open_requests > 0
    counts: Sequence[int] = [count for count in (seen.running, seen.waiting) if count is not None]
    return any(counts) if counts else None


def is_asked(exit_: Exit) -> bool:
    """Whether an end says of itself that it was ordered."""
    return exit_.reason in ASKED


def _is_new_life(tenant: Tenant, seen: ReplicaSeen) -> bool:
    if seen.exit is not None or seen.phase == "stopped":
        return False
    others = bool(seen.pids) and bool(tenant.pids) and not set(seen.pids) & set(tenant.pids)
    if tenant.ended_at is None:
        return others or (seen.phase == "starting" and tenant.phase not in {None, "starting"})
    return others or seen.phase == "starting" or (not tenant.pids and seen.phase == "ready") or _rises(tenant, seen)


def _rises(tenant: Tenant, seen: ReplicaSeen) -> bool:
    """Whether it works again though its end was seen: a counter differs, and a leader that ended is not named."""
    fell = seen.step is not None and tenant.step is not None and seen.step != tenant.step
    return fell or (bool(seen.ready) and not seen.pids)


def _follow(tenant: Tenant, seen: ReplicaSeen, now: float) -> bool | None:
    """Take its counters in; whether one of them moved. A counter that fell is a new start, and moves too."""
    pairs = ((tenant.step, seen.step), (tenant.tokens, seen.tokens), (tenant.ok, seen.requests_ok))
    known = [(old, new) for old, new in pairs if old is not None and new is not None]
    tenant.step = tenant.step if seen.step is None else seen.step
    tenant.tokens = tenant.tokens if seen.tokens is None else seen.tokens
    tenant.ok = tenant.ok if seen.requests_ok is None else seen.requests_ok
    told = seen.step is not None or seen.tokens is not None
    moved = any(old != new for old, new in known)
    if moved or (told and tenant.moved_at is None):
        tenant.moved_at = now
    if moved:
        return True
    return False if told and any(new in (seen.step, seen.tokens) for _, new in known) else None
