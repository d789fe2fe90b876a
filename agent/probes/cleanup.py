"""Cleanup: a replica has ended when all its processes are gone and its GPUs' memory is free, not when its port is.

Half a minute after the end: a process of it that still lives and holds on to a GPU is a failed cleanup, one that
hangs in the kernel needs a reboot, and memory that the driver books on a process which is gone needs a reset.
A zombie has ended. Only processes that are known to be the replica's are named; titles are never looked at.
"""

from collections.abc import Iterator, Sequence

import msgspec

from agent.probes.probe import Clear, Finding, Verdict
from agent.probes.tenants import Look, Process, Tenant, Tenants
from vocab.events import Evidence, Scope, Source, rfc3339

FAILED, STUCK, ZOMBIE = "replica_failed_cleanup", "stuck_in_kernel", "memory_zombie"
PROOF_S = 10.0  # in which a look at the processes of an ended replica is due; without one they are taken for gone
PATIENCE_S = 30.0  # a driver takes seconds to free the memory of a killed process, half a minute for a full board


class Wake(msgspec.Struct):
    """What one ended life leaves behind: when it ended, and what was said of it.

    ``proof_due``: until when its processes that nobody has looked at since are not taken for gone.
    """

    ended_at: float
    at: float
    due: float | None
    proof_due: float | None = None
    said: dict[str, list[str]] = {}  # code -> GPUs of its findings


class CleanupProbe(msgspec.Struct):
    """Watches what ended replicas leave behind."""

    wakes: dict[str, Wake] = {}

    def looked(self, look: Look, tenants: Tenants, now: float) -> Sequence[Verdict]:
        """A look at a replica: its end begins the wait; that it lives again says nothing of what is left."""
        return self.review(look.tenant, tenants, look.seen.at, now)

    def review(self, tenant: Tenant, tenants: Tenants, at: float, now: float) -> Sequence[Verdict]:
        """What is left of a replica, after anything was heard of it."""
        wake = self.wakes.get(tenant.replica)
        if tenant.ended_at is None:
            if wake is None:
                return ()
            del self.wakes[tenant.replica]
            return self._over(tenant, wake, at)
        if wake is None:
            wake = self.wakes[tenant.replica] = Wake(tenant.ended_at, at, tenant.ended_at + PATIENCE_S)
            wake.proof_due = None if tenant.is_reaped else tenant.ended_at + PROOF_S
        if any(_left(tenant, tenants)):
            return self._judge(tenant, wake, tenants, at, now)
        return self._over(tenant, wake, at)

    def tick(self, tenants: Tenants, now: float) -> Sequence[Verdict]:
        """Judge what is left when the patience is over."""
        verdicts: list[Verdict] = []
        for replica, wake in self.wakes.items():
            tenant = tenants.named.get(replica)
            if wake.proof_due is not None and now >= wake.proof_due:
                wake.proof_due = None
            if wake.due is not None and now >= wake.due:
                at = wake.at + (wake.due - wake.ended_at)
                wake.due = None
                if tenant is not None:
                    verdicts += self._judge(tenant, wake, tenants, at, now)
        return verdicts

    def next_deadline(self) -> float | None:
        """When the first patience is over."""
        times = [time for wake in self.wakes.values() for time in (wake.due, wake.proof_due)]
        return min((time for time in times if time is not None), default=None)

    def leftovers(self, tenant: Tenant, tenants: Tenants) -> list[int]:
        """The processes of an ended replica that live, still own memory of a GPU, or may do so."""
        if tenant.ended_at is None:
            return []
        wake = self.wakes.get(tenant.replica)
        unseen = tenant.pids[1:] if wake is not None and wake.proof_due is not None else ()
        if unseen and all(_is_free(gpu, tenant, tenants) for gpu in tenant.gpus):
            unseen = ()
        return sorted({pid for pid, _ in _left(tenant, tenants)} | set(unseen))

    # -- verdicts ---------------------------------------------------------------------------------------

    def _judge(self, tenant: Tenant, wake: Wake, tenants: Tenants, at: float, now: float) -> Sequence[Verdict]:
        if now - wake.ended_at < PATIENCE_S:
            return ()
        found: dict[str, list[int]] = {}
        for pid, code in _left(tenant, tenants):
            found.setdefault(code, []).append(pid)
        verdicts: list[Verdict] = []
        for code, pids in sorted(found.items()):
            if code not in wake.said:
                gpus = _held(tenant, pids, tenants) if code in {STUCK, ZOMBIE} else []
                wake.said[code] = gpus
                verdicts += _findings(code, tenant, pids, gpus, at, now - wake.ended_at)
        return verdicts

    def _over(self, tenant: Tenant, wake: Wake, at: float) -> Sequence[Verdict]:
        verdicts: list[Verdict] = []
        for code, gpus in wake.said.items():
            places: Sequence[str | None] = gpus or [None]
            verdicts += [Clear(code=code, at=at, gpu=gpu, name=tenant.replica) for gpu in places]
        wake.said = {}
        return verdicts


def _left(tenant: Tenant, tenants: Tenants) -> Iterator[tuple[int, str]]:
    """The processes that an ended life left, each with what it would be if it stayed so."""
    ended = tenant.ended_at or 0.0
    for pid in tenants.pids_of(tenant):
        process = tenants.processes.get(pid)
        if process is not None and process.is_alive and _counts(tenant, pid, process):
            yield pid, STUCK if process.state == "D" else FAILED
        elif _booked(pid, tenant, tenants, ended):
            yield pid, ZOMBIE if process is not None and not process.is_alive else FAILED


def _counts(tenant: Tenant, pid: int, process: Process) -> bool:
    """The leader is proven gone by its exit, whatever was seen of it before; a later look wins."""
    return pid != (tenant.pids[0] if tenant.pids else None) or process.at >= (tenant.ended_at or 0.0)


def _booked(pid: int, tenant: Tenant, tenants: Tenants, ended: float) -> bool:
    """Whether a GPU of it still lists the process, or the host books its memory, by what was told after its end."""
    for gpu in tenant.gpus:
        listing = tenants.gpus.get(gpu)
        if listing is not None and listing.processes and (listing.told_at or 0.0) > ended and pid in listing.processes:
            return True
    process = tenants.processes.get(pid)
    if process is None or process.is_alive or process.at <= ended:
        return False
    told = {gpu: known.told_at for gpu, known in tenants.gpus.items() if known.told_at is not None}
    return any(used and gpu in tenant.gpus and told.get(gpu, 0.0) <= process.at for gpu, used in process.used.items())


def _is_free(gpu: str, tenant: Tenant, tenants: Tenants) -> bool:
    """Whether a GPU has told since the end which processes it has: what is left is known then."""
    listing = tenants.gpus.get(gpu)
    told_at = listing.told_at if listing is not None else None
    return told_at is not None and tenant.ended_at is not None and told_at > tenant.ended_at


def _held(tenant: Tenant, pids: Sequence[int], tenants: Tenants) -> list[str]:
    """The GPUs that these processes keep: as the host or the driver tells; else the replica's only one."""
    used = {gpu for pid in pids if pid in tenants.processes for gpu in tenants.processes[pid].used}
    listed = {
        gpu for gpu in tenant.gpus if (known := tenants.gpus.get(gpu)) and set(pids) & (known.processes or {}).keys()
    }
    found = [gpu for gpu in tenant.gpus if gpu in used | listed]
    return found or (list(tenant.gpus) if len(tenant.gpus) == 1 else [])


_WORDS = {
    FAILED: "the replica has ended, but its processes {pids} are still there: its GPUs are not used again",
    STUCK: "processes {pids} of the ended replica hang in the kernel and cannot be ended: only a reboot helps",
    ZOMBIE: "the driver still books memory on processes {pids} of the ended replica, which are gone",
}


def _findings(
    code: str, tenant: Tenant, pids: Sequence[int], gpus: Sequence[str], at: float, for_s: float
) -> Iterator[Finding]:
    stamp = rfc3339(at)
    text = _WORDS[code].format(pids=", ".join(map(str, pids)))
    places: Sequence[str | None] = gpus or [None]
    for gpu in places:
        yield Finding(
            code=code,
            at=at,
            gpu=gpu,
            scope=Scope.GPU if gpu else None,
            source=Source.HOST,
            first=(code, tenant.replica, gpu or "", stamp),
            pid=pids[0],
            fields=tenant.fields() | {"pids": list(pids), "for_s": round(for_s, 3)},
            text=text,
            evidence=(Evidence(source="host", at=stamp, line=text),),
        )
