"""Replicas: one look goes to all probes that follow them. Each keeps its own file and its own fault.

stall       replica_stalled       busy or wedged
death       replica_died          killed by its GPU, crashed by itself, killed for memory
collective  collective_timeout    members wait for one another
cleanup     replica_failed_cleanup, memory_zombie, stuck_in_kernel
wrong_gpu   replica_wrong_gpu
requests    replica_unhealthy
crash_loop  crash_loop
door        no code: degraded
drainage    no code: the drain is over
"""

from collections.abc import Sequence

import msgspec

from agent.probes.autopsy import CODE as DIED
from agent.probes.cleanup import CleanupProbe
from agent.probes.collective import CollectiveProbe
from agent.probes.crash_loop import CrashLoopProbe
from agent.probes.death import DeathProbe
from agent.probes.door import DoorProbe
from agent.probes.drainage import DrainProbe
from agent.probes.probe import Finding, Verdict
from agent.probes.requests import RequestsProbe
from agent.probes.scene import Scene
from agent.probes.stall import StallProbe
from agent.probes.tenants import Tenant, Tenants
from agent.probes.wrong_gpu import WrongGpuProbe
from vocab.messages import ReplicaStatus
from vocab.observations import (
    AnyObservation,
    Check,
    ClockStep,
    GpuSample,
    LogLine,
    ProcessSeen,
    ReplicaSeen,
)


class ReplicaProbe(msgspec.Struct):
    """Follows every replica of the node."""

    tenants: Tenants = msgspec.field(default_factory=Tenants)
    stall: StallProbe = msgspec.field(default_factory=StallProbe)
    death: DeathProbe = msgspec.field(default_factory=DeathProbe)
    collective: CollectiveProbe = msgspec.field(default_factory=CollectiveProbe)
    cleanup: CleanupProbe = msgspec.field(default_factory=CleanupProbe)
    wrong_gpu: WrongGpuProbe = msgspec.field(default_factory=WrongGpuProbe)
    requests: RequestsProbe = msgspec.field(default_factory=RequestsProbe)
    crash_loop: CrashLoopProbe = msgspec.field(default_factory=CrashLoopProbe)
    door: DoorProbe = msgspec.field(default_factory=DoorProbe)
    drain: DrainProbe = msgspec.field(default_factory=DrainProbe)

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take in what is about a replica, its processes, its log or its GPUs."""
        match observation:
            case ReplicaSeen(serves=False):
                return ()  # somebody's work of which nothing can be told but that it is there
            case ReplicaSeen():
                return self._looked(observation, scene, now)
            case ProcessSeen():
                return self._met(observation, now)
            case GpuSample():
                return self._sampled(observation, scene, now)
            case LogLine():
                self.death.read(observation, now)
                return self.collective.read(observation, self.tenants, now)
            case Check():
                return self.stall.checked(observation, self.tenants)
            case ClockStep(pause_s=float() | int() as pause_s):
                self.tenants.shift(observation)
                self.stall.shift(pause_s)
                self.collective.shift(pause_s)
        return ()

    def _looked(self, seen: ReplicaSeen, scene: Scene, now: float) -> Sequence[Verdict]:
        look = self.tenants.look(seen, now)
        self.door.looked(look)
        self.drain.looked(look, now)
        died = self._counted(self.death.looked(look, self.tenants, now), look.tenant, now)
        lives = self.crash_loop.lives(look.tenant, seen.at, now) if look.moved else ()
        return (
            *died,
            *lives,
            *self.collective.looked(look, self.tenants, now),
            *(() if self._is_explained(seen.replica) else self.stall.looked(look, self.tenants, now)),
            *self.requests.looked(look),
            *self.wrong_gpu.looked(look, self.tenants, scene),
            *self.cleanup.looked(look, self.tenants, now),
        )

    def _is_explained(self, replica: str) -> bool:
        """Whether it is known already why a replica does not step."""
        return self.death.is_down(replica) or self.collective.stands(replica)

    def _met(self, seen: ProcessSeen, now: float) -> Sequence[Verdict]:
        tenant = self.tenants.meet(seen, now)
        if tenant is None:
            return ()
        return (
            *self._counted(self.death.met(seen, tenant, self.tenants, now), tenant, now),
            *self.cleanup.review(tenant, self.tenants, seen.at, now),
        )

    def _sampled(self, sample: GpuSample, scene: Scene, now: float) -> Sequence[Verdict]:
        gpu = scene.sampled(sample)
        if gpu is None:
            return ()
        self.tenants.sample(gpu, sample, now)
        if sample.processes is None:
            return ()
        verdicts: list[Verdict] = []
        for tenant in self.tenants.named.values():
            if tenant.pids:
                verdicts += self.wrong_gpu.review(tenant, self.tenants, sample.at)
        for tenant in self.tenants.on(gpu):
            verdicts += self.cleanup.review(tenant, self.tenants, sample.at, now)
        return verdicts

    def _counted(self, verdicts: Sequence[Verdict], tenant: Tenant, now: float) -> Sequence[Verdict]:
        deaths = [v for v in verdicts if isinstance(v, Finding) and v.code == DIED]
        return (*verdicts, *(found for death in deaths for found in self.crash_loop.died(death, tenant, now)))

    def tick(self, scene: Scene, now: float) -> Sequence[Verdict]:
        """What has become due: a collective that outlived its grace, processes that outlived their replica."""
        self.drain.tick(now)
        return (*self.collective.tick(self.tenants, now), *self.cleanup.tick(self.tenants, now))

    def next_deadline(self) -> float | None:
        """When ``tick`` has something to do, or None."""
        times = (self.collective.next_deadline(), self.cleanup.next_deadline(), self.drain.next_deadline())
        return min((time for time in times if time is not None), default=None)

    def rebooted(self) -> None:
        """Another boot: no process of before is left, and nothing of what was seen of them counts."""
        deaths = self.crash_loop
        fresh = ReplicaProbe(crash_loop=deaths)
        for name in ReplicaProbe.__struct_fields__:
            setattr(self, name, getattr(fresh, name))

    # -- what the words of a replica rest on ------------------------------------------------------------

    def regard(self, status: ReplicaStatus) -> ReplicaStatus:
        """A status with what these probes know of it."""
        name = status.replica
        tenant = self.tenants.named.get(name)
        if tenant is None:
            return status
        stands_still = self.stall.stands(name) or self.collective.stands(name) or self.death.is_down(name)
        return msgspec.structs.replace(
            status,
            stepping=status.stepping and not stands_still,
            healthy=not self.door.is_shut(name),
            leftovers=tuple(self.cleanup.leftovers(tenant, self.tenants)),
        )

    def released(self, replica: str) -> str:
        """Why a replica that drains counts as empty though its exit was not seen; "" if it does not."""
        return self.drain.released(replica, self.tenants)
