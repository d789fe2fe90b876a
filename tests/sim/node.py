"""A node of the simulator: it reports, obeys its Desired, and breaks when told to. A small real model, no mock.

It keeps the promises of an agent that a core may rely on: items are sent until they are acknowledged,
replicas outlive everything but their drain, their stop and their GPU, a fence stops admission at once.
"""

from functools import cache
from hashlib import blake2b

import msgspec

from controller.core.fleet.stimuli import Arrived, NodeReported, Replicas, Reported, Sampled, Stimulus
from vocab.catalogue.codes import row
from vocab.events import Cleared, Event, Source, event_id, rfc3339
from vocab.messages import (
    ActionItem,
    ClearedItem,
    Desired,
    EventItem,
    FenceItem,
    GpuStatus,
    Item,
    NodeFacts,
    Order,
    ReplicaSpec,
    ReplicaStatus,
)
from vocab.observations import Exit, GpuIdentity
from vocab.readings import Readings
from vocab.states import ActionKind, ActionState, Level

START_S = 3.0
DRAIN_S = 4.0  # how long open requests take here


@cache
def boot_id_of(node: str, boot: int) -> str:
    """Another one for each boot."""
    return blake2b(f"{node}/{boot}".encode(), digest_size=4).hexdigest()


@cache
def identities(gpus: tuple[str, ...]) -> tuple[GpuIdentity, ...]:
    """What a node tells of its GPUs; told with each report, and made once."""
    return tuple(
        GpuIdentity(uuid=uuid, index=index, pci=f"0000:{index + 1:02x}:00", name="NVIDIA H100 80GB HBM3")
        for index, uuid in enumerate(gpus)
    )


@cache
def in_groups(gpus: tuple[str, ...], size: int) -> tuple[tuple[str, ...], ...]:
    """The GPUs that are reset together."""
    return tuple(gpus[start : start + size] for start in range(0, len(gpus), size))


class Process(msgspec.Struct):
    """A replica's process."""

    spec: ReplicaSpec
    began_at: float
    drain_at: float | None = None
    exit: Exit | None = None
    requests: int = 4


class Node:
    """One node with its GPUs, replicas and spool."""

    driver: str | None = None

    def __init__(self, name: str, gpus: int = 8, level: Level = Level.REPAIR, group: int = 1) -> None:
        self.name = name
        self.gpus = tuple(f"GPU-{name}-{index}" for index in range(gpus))
        self.level = level
        self.group = group
        self.boot = 1
        self.booted_at = 0.0
        self.lost: set[str] = set()
        self.blind: set[str] = set()  # no readings come, nothing else is wrong
        self.fences: dict[str, str] = {}
        self.kept: set[str] = set()  # GPUs whose fence a hold has replaced: it is kept up until that is lifted
        self.stalled: set[str] = set()  # replicas that stand still with work
        self.faults: dict[tuple[str, str], Event] = {}  # by GPU and code: what stands
        self.desired: Desired | None = None
        self.processes: dict[str, Process] = {}
        self.spool: list[Item] = []
        self.silent = False
        self.obeys = False  # whether it has hands for resets and reboots
        self.busy = False  # it does not get to its orders
        self.abilities: tuple[ActionKind, ...] | None = None  # what it says of these hands
        self.told_facts: NodeFacts | None = None
        self.answered: set[str] = set()
        self.paused = False
        self.booting = False
        self.slow = False  # it starts nothing for now

    # -- what happens to it ---------------------------------------------------------------------------

    def hit(
        self, gpu: str, code: str, now: float, *, fence: bool = False, injected: bool = False, pid: int = 0
    ) -> Event:
        """A fault: an event, and with ``fence`` what the agent does about it by itself."""
        known = row(code)
        old = None if injected else self.faults.get((gpu, code))  # injected and real ones never fold
        event = Event(
            id=event_id(self.boot_id, gpu, code, "injected" * injected, (now, pid)) if old is None else old.id,
            rev=1 if old is None else old.rev + 1,
            at=rfc3339(now),
            node=self.name,
            boot_id=self.boot_id,
            gpu=gpu,
            code=code,
            severity=known.severity,
            recovery=known.recovery,
            scope=known.scope,
            pid=pid or None,
            injected=injected,
            source=Source.KERNEL,
            first_at=rfc3339(now),
            last_at=rfc3339(now),
            text=f"{code} on {gpu}",
        )
        if fence and gpu not in self.fences:
            self.fences[gpu] = event.id
            self.spool.append(
                FenceItem(at=now, node=self.name, gpu=gpu, op="placed", event=event.id, why=f"{code} is certain")
            )
        if known.condition and not injected:
            self.faults[gpu, code] = event
        if code in {"xid:79", "gpu_lost"}:
            self.lost.add(gpu)
        self.spool.append(EventItem(event))
        return event

    def clear(self, gpu: str, now: float, by: str = "reset") -> None:
        """The GPU is well again."""
        self.lost.discard(gpu)
        self.fences.pop(gpu, None)
        for key in [key for key in self.faults if key[0] == gpu]:
            event = self.faults.pop(key)
            cleared = Cleared(
                at=rfc3339(now), node=self.name, boot_id=self.boot_id, gpu=gpu, code=event.code, by=by, event=event.id
            )
            self.spool.append(ClearedItem(cleared))

    def complain(self, replica: str, code: str, now: float, **fields: object) -> Event:
        """The judge says something of a replica: an event about it, with these fields."""
        known = row(code)
        event = Event(
            id=event_id(self.boot_id, replica, code, "", (now,)),
            at=rfc3339(now),
            node=self.name,
            boot_id=self.boot_id,
            code=code,
            severity=known.severity,
            recovery=known.recovery,
            scope=known.scope,
            source=Source.ENGINE,
            first_at=rfc3339(now),
            last_at=rfc3339(now),
            fields={"replica": replica, **fields},
            text=f"{code} of {replica}",
        )
        self.spool.append(EventItem(event))
        return event

    def content(self, event: Event, now: float) -> None:
        """What was said of a replica is over."""
        self.spool.append(
            ClearedItem(
                Cleared(
                    at=rfc3339(now),
                    node=self.name,
                    boot_id=self.boot_id,
                    gpu=None,
                    code=event.code,
                    by="signal",
                    event=event.id,
                    name=str(event.fields["replica"]),
                )
            )
        )

    def reboot(self, now: float) -> None:
        """A new boot: everything that ran is gone, every fault that a reboot ends is over."""
        self.boot, self.booted_at = self.boot + 1, now
        self.lost.clear()
        self.fences.clear()
        self.kept.clear()
        self.faults.clear()
        self.processes.clear()

    def crash(self, replica: str, reason: str = "crash_loop") -> None:
        """The process of a replica ends, and the agent has given up restarting it."""
        self.processes[replica].exit = Exit(code=1, reason=reason)

    # -- what it does ---------------------------------------------------------------------------------

    @property
    def boot_id(self) -> str:
        return boot_id_of(self.name, self.boot)

    def obey(self, desired: Desired | None) -> None:
        """Take a new Desired."""
        if desired is not None and not self.silent:
            self.desired = desired

    def live(self, now: float) -> None:
        """One second of converging."""
        if self.desired is None:
            return
        held = {hold.gpu for hold in self.desired.holds}
        for gpu in held & self.fences.keys():
            del self.fences[gpu]  # confirmed and replaced
            self.kept.add(gpu)
        self.kept &= held
        wanted = {spec.replica: spec for spec in self.desired.replicas}
        for spec in wanted.values():
            self._converge(spec, now)
        for name in [name for name in self.processes if name not in wanted]:
            del self.processes[name]
        for order in self.desired.orders:
            if order.id not in self.answered and not self.busy:
                self._do(order, now)

    def _converge(self, spec: ReplicaSpec, now: float) -> None:
        process = self.processes.get(spec.replica)
        if process is None:
            if spec.phase == "run" and not self.slow and not self._is_held(spec) and not self._is_fenced(spec):
                self.processes[spec.replica] = Process(spec, now)
            return
        process.spec = spec
        if process.exit is not None:
            return
        if spec.phase == "drain":
            process.drain_at = now if process.drain_at is None else process.drain_at
            left = DRAIN_S - (now - process.drain_at)
            process.requests = max(0, round(left))
            if left <= 0:
                process.exit = Exit(code=0, reason="drained")
        elif spec.phase == "stop":
            process.exit = Exit(code=3, reason="stopped")
        elif (
            len(spec.nodes) == 1
            and process.drain_at is not None
            and now - process.drain_at >= DRAIN_S
            and not self._is_held(spec)
        ):
            self.processes[spec.replica] = Process(spec, now)  # told to exit it has ended, and is wanted again

    def _is_held(self, spec: ReplicaSpec) -> bool:
        """Whether nothing is started there: a hold stands on a GPU of it, or on the node."""
        assert self.desired is not None
        held = {hold.gpu for hold in self.desired.holds}
        return None in held or any(member.gpu in held for member in spec.members)

    def _is_fenced(self, spec: ReplicaSpec) -> bool:
        """Whether what runs there admits nothing: a hold alone lets it serve on."""
        return any(member.gpu in self.fences or member.gpu in self.kept for member in spec.members)

    def _do(self, order: Order, now: float) -> None:
        self.answered.add(order.id)
        if order.replica is not None:  # for this every agent has hands
            self._restart(order, now)
            return
        if not self.obeys:
            self._answer(order, ActionState.REFUSED, now, "this agent has no hands for it")
            return
        self._answer(order, ActionState.RUNNING, now)
        if order.of == "reboot_node":
            self.reboot(now)
        elif order.gpu is not None and order.of == "reset_gpu":
            self.clear(order.gpu, now)
        self._answer(order, ActionState.DONE, now)

    def _restart(self, order: Order, now: float) -> None:
        """End a replica's process and start it anew in place."""
        process = self.processes.get(order.replica or "")
        if process is None or process.exit is not None:
            self._answer(order, ActionState.REFUSED, now, f"no process of {order.replica} lives on this node")
            return
        self.processes[process.spec.replica] = Process(process.spec, now)
        self.stalled.discard(process.spec.replica)
        self._answer(order, ActionState.RUNNING, now)

    def _answer(self, order: Order, state: ActionState, now: float, error: str | None = None) -> None:
        self.spool.append(
            ActionItem(
                at=now,
                node=self.name,
                id=order.id,
                of=order.of,
                token=order.token,
                state=state,
                gpu=order.gpu,
                error=error,
            )
        )

    # -- what it says ---------------------------------------------------------------------------------

    def facts(self) -> NodeFacts:
        return NodeFacts(
            node=self.name,
            boot_id=self.boot_id,
            boot_at=self.booted_at,
            booting=self.booting,
            virtual=True,
            level=self.level,
            driver=self.driver,
            gpus=identities(self.gpus),
            reset_group=in_groups(self.gpus, self.group),
            abilities=self.abilities,
        )

    def report(self, now: float) -> list[Stimulus]:
        """One batch, as the shell takes it apart. The spool is kept until ``acknowledged``."""
        if self.silent:
            return []
        said: list[Stimulus] = []
        facts = self.facts()
        if facts != self.told_facts:
            said.append(NodeReported(facts=facts))
        said.append(Reported(node=self.name, paused=self.paused))
        said += [Arrived(node=self.name, item=item) for item in self.spool]
        said.append(
            Sampled(node=self.name, gpus=tuple(self._sample(gpu, now) for gpu in self.gpus if gpu not in self.blind))
        )
        said.append(Replicas(node=self.name, statuses=tuple(self._status(p, now) for p in self.processes.values())))
        return said

    def acknowledged(self) -> None:
        """The batch is on the controller's disk."""
        if not self.silent:
            self.told_facts = self.facts()
            self.spool.clear()

    def forget_connection(self) -> None:
        """The controller was restarted: the next batch carries the facts again."""
        self.told_facts = None

    def _sample(self, gpu: str, now: float) -> GpuStatus:
        if gpu in self.lost:
            return GpuStatus(gpu=gpu, at=now, error="GPU_IS_LOST")
        return GpuStatus(gpu=gpu, at=now, readings=Readings(temperature_c=40.0))

    def _status(self, process: Process, now: float) -> ReplicaStatus:
        spec = process.spec
        ready = process.exit is None and process.drain_at is None and now - process.began_at >= START_S
        phase = (
            "stopped"
            if process.exit
            else "draining"
            if process.drain_at is not None
            else "ready"
            if ready
            else "starting"
        )
        return ReplicaStatus(
            replica=spec.replica,
            deployment=spec.deployment,
            members=spec.members,
            phase=phase,
            ready=ready,
            admitting=ready and not self._is_fenced(spec),
            stepping=process.exit is None and spec.replica not in self.stalled,
            open_requests=process.requests if process.exit is None else 0,
            url=f"http://{self.name}/{spec.replica}",
            token=spec.token,
            exit=process.exit,
        )
