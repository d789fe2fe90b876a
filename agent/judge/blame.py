"""What a replica died of, or waits for: its events joined with the faults of its GPUs and of its processes.

A fault of a member's GPU, or one that names a process of the replica, explains the replica's event, whichever was
seen first. The verdict follows from the cause: killed by its GPU where the fault takes the GPU out of service,
crashed by itself where the fault is of the program, out of memory where the kernel says that it chose this process.
"""

import msgspec

from agent.judge.links import NOT_ROOTS
from vocab.events import Event, Flag, Recovery, Scope, Severity

DIED = "replica_died"
COLLECTIVE = "collective_timeout"  # its watchdog ends the program; what lies behind both explains more
WITHIN_S: dict[str, float] = {  # how long after a fault its effect on a replica is seen
    DIED: 60.0,  # a killed engine exits within seconds
    "replica_stalled": 200.0,  # one that waits for a dead GPU is given two minutes of patience
    COLLECTIVE: 700.0,  # the usual time-out of a collective is ten minutes
    "container_device_access_lost": 60.0,
}
MEMORY_S = max(WITHIN_S.values())
MOST_FAULTS = 256
ITS_OWN = frozenset({"out_of_memory", "out_of_gpu_memory", "killed_by_gpu"})  # ends that no collective brings about
KILLS = frozenset({"xid:94", "xid:48", "xid:172"})  # contained memory errors end the process, and the GPU goes on
NAMED = frozenset({"oom_kill", "gpu_lost", "gpu_missing", "gpu_requires_reset", "ecc_uncorrectable", "driver_hang"})


class Fault(msgspec.Struct, frozen=True):
    """What is remembered of a fault."""

    id: str
    code: str
    gpu: str | None
    pid: int | None
    is_of_process: bool
    severity: Severity
    recovery: Recovery
    seen: float
    replica: str | None = None


class Blame(msgspec.Struct):
    """The faults of the last minutes that can explain what a replica does."""

    faults: dict[str, Fault] = {}

    def note(self, event: Event, now: float) -> bool:
        """Keep a fault; True if it may explain an event of a replica that was judged before it."""
        if event.injected or not _is_fault(event):
            return False
        replica = str(event.fields.get("replica")) if event.code == COLLECTIVE else None
        key = f"{event.code} {event.gpu or replica} {event.pid}"
        self.faults.pop(key, None)
        self.faults[key] = Fault(
            id=event.id,
            code=event.code,
            gpu=event.gpu,
            pid=event.pid,
            is_of_process=event.scope is Scope.PROCESS,
            severity=event.severity,
            recovery=event.recovery,
            seen=now,
            replica=replica,
        )
        while len(self.faults) > MOST_FAULTS or now - next(iter(self.faults.values())).seen > MEMORY_S:
            del self.faults[next(iter(self.faults))]
        return True

    def explain(self, event: Event, now: float) -> Event:
        """The event of a replica with its cause, and with the verdict that follows from it."""
        within = WITHIN_S.get(event.code)
        if within is None or event.injected:
            return event
        gpus, pids = set(event.fields.get("gpus", ())), _pids(event)
        near = [f for f in self.faults.values() if abs(now - f.seen) <= within]
        hits = [f for f in near if f.replica is None and _reaches(f, gpus, pids)]
        if not hits and event.code == DIED and event.fields.get("verdict") not in ITS_OWN:
            hits = [f for f in near if f.replica is not None and f.replica == event.fields.get("replica")]
        if not hits:
            return event
        worst = max(hits, key=lambda f: (f.code == "oom_kill", f.severity.rank, f.recovery.rank, -f.seen))
        fields = event.fields
        if event.code == DIED:
            fields = fields | {"verdict": verdict(worst, str(fields.get("verdict")))}
        return msgspec.structs.replace(event, cause=event.cause or worst.id, fields=fields)


def verdict(fault: Fault, before: str) -> str:
    """By what a process ended, given the fault that explains it."""
    if fault.code == "oom_kill":
        return "out_of_memory"
    if fault.code == COLLECTIVE and before != "unseen":
        return before  # its watchdog crashes a program; others of the group are told to stop
    if fault.recovery.rank >= Recovery.DRAIN_AND_RESET.rank or fault.code in KILLS:
        return "killed_by_gpu"
    return before if before == "killed_by_gpu" else "crashed_by_itself"


def _is_fault(event: Event) -> bool:
    if Flag.LOOKUP_FAILED in event.flags or event.code in NOT_ROOTS or event.severity is Severity.INFO:
        return False
    return event.code.startswith("xid:") or event.code in NAMED or event.code == COLLECTIVE


def _pids(event: Event) -> set[int]:
    found = {pid for pid in event.fields.get("pids", ()) if isinstance(pid, int)}
    return found | ({event.pid} if event.pid is not None else set())


def _reaches(fault: Fault, gpus: set[str], pids: set[int]) -> bool:
    """Whether it is of a GPU or a process of the replica. A fault of one process is of that process alone."""
    if fault.pid is not None and fault.pid in pids:
        return True
    if fault.code == "oom_kill" or (fault.is_of_process and fault.pid is not None and pids):
        return False
    return fault.gpu is not None and fault.gpu in gpus
