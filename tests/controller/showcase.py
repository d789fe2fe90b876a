"""A made-up fleet in the interface's own types: an Xid 79 on GPU 0, its replica moved, a reboot waiting."""

from controller.api.forms import Fleet, Story
from controller.core.fleet.views import DeploymentView, GpuView, NodeView, PauseView, ReplicaView
from vocab.events import Event, Evidence, Recovery, Scope, Severity, Source
from vocab.lines import (
    ActionLine,
    AnyLine,
    Budget,
    ConditionLine,
    EventLine,
    HoldLine,
    IncidentLine,
    StateLine,
    Subject,
    Target,
)
from vocab.readings import Readings
from vocab.states import ActionKind, ActionState, ClearsOn

AT = 1_796_000_000.0
NODE = "gpu-node-01"
RAW = "6,1042,81723004519,-;NVRM: Xid (PCI:0000:19:00): 79, pid=4121, name=python, GPU has fallen off the bus."


def uuid(index: int) -> str:
    return f"GPU-{index:08x}-5e1f-4c1a-9b7e-0c3d2a1b{index:04x}"


def replica(number: int) -> str:
    return ("chat-4f1c02", "chat-91ab37", "pair-0d22e8", "chat-7be410")[number]


def readings(index: int) -> Readings:
    busy = index in (1, 3, 4, 5)
    return Readings(
        temperature_c=41.0 + 6 * busy + index,
        power_w=118.0 + 412 * busy + 7 * index,
        power_limit_w=700.0,
        utilization_ratio=1.0 if index == 4 else 0.93 if busy else 0.0,
        sm_active_ratio=0.11 if index == 4 else 0.71 if busy else 0.0,
        dram_active_ratio=0.55 if busy else 0.0,
        memory_used_bytes=(61 if busy else 1) * 2**30,
        memory_total_bytes=80 * 2**30,
    )


HOLD = HoldLine(
    at=AT + 0.4,
    subject=Subject(gpu=uuid(0)),
    id="h-51c2",
    op="placed",
    owner="policy",
    reason="xid:79 GPU fell off the bus",
    incident="i-7a01",
    clears_on=ClearsOn.REBOOT,
)
CONDITION = ConditionLine(
    at=AT + 0.3,
    subject=Subject(gpu=uuid(0)),
    id="c-19d0",
    code="xid:79",
    state="open",
    severity=Severity.CRITICAL,
    since=AT,
    last_at=AT,
    clears_on=ClearsOn.REBOOT,
    events=("5d1f0a",),
)
WARM = ConditionLine(
    at=AT - 400,
    subject=Subject(gpu=uuid(5)),
    id="c-77aa",
    code="thermal_slowdown",
    state="open",
    severity=Severity.WARNING,
    since=AT - 400,
    last_at=AT,
    clears_on=ClearsOn.SIGNAL,
)
INCIDENT = IncidentLine(
    at=AT + 0.3,
    subject=Subject(gpu=uuid(0)),
    id="i-7a01",
    state="open",
    root="5d1f0a",
    code="xid:79",
    severity=Severity.CRITICAL,
    recovery=Recovery.REBOOT_NODE,
    events=("5d1f0a",),
)
EVENT = Event(
    id="5d1f0a",
    at="2026-11-29T18:13:20.120000Z",
    node=NODE,
    gpu=uuid(0),
    pci="0000:19:00",
    code="xid:79",
    severity=Severity.CRITICAL,
    recovery=Recovery.REBOOT_NODE,
    scope=Scope.GPU,
    source=Source.KERNEL,
    text="GPU has fallen off the bus",
    evidence=(Evidence(source="kmsg", line=RAW),),
)


def action(of: ActionKind, state: ActionState, after: float, why: str, subject: Subject, **more: object) -> ActionLine:
    return ActionLine(
        at=AT + after,
        subject=subject,
        id=f"a-{of.value}",
        of=of,
        state=state,
        token="1.7",
        incident="i-7a01",
        rule="gpu_off_the_bus",
        policy="builtin-1",
        why=why,
        **more,  # type: ignore[arg-type]
    )


REBOOT = action(
    ActionKind.REBOOT_NODE,
    ActionState.WAITING,
    9.8,
    "the GPU comes back only with a reboot, which would take 7 healthy GPUs: a person must approve",
    Subject(node=NODE),
    disrupts=tuple(Subject(gpu=uuid(index)) for index in range(1, 8)),
)


def story() -> list[AnyLine]:
    def state(after: float, subject: Subject, old: str | None, new: str, why: str) -> StateLine:
        return StateLine(at=AT + after, subject=subject, from_=old, to=new, why=why)

    gpu, old, new = Subject(gpu=uuid(0)), Subject(replica=replica(0)), Subject(replica=replica(3))
    start = {"target": Target(node=NODE, gpus=(uuid(3),)), "budget": Budget(limit=3, used=1, of="starts")}
    start_why = "a spare GPU is free, so the replacement comes first"
    drain_why = "the replacement is ready"
    return [
        EventLine(at=AT + 0.2, subject=gpu, event=EVENT),
        CONDITION,
        INCIDENT,
        state(0.3, gpu, "healthy", "lost", "xid:79 and NVML says GPU_IS_LOST"),
        HOLD,
        action(ActionKind.START_REPLICA, ActionState.ORDERED, 0.4, start_why, new, **start),
        state(0.4, new, None, "starting", "ordered as a replacement"),
        state(6.1, new, "starting", "ready", "it answers and admits"),
        action(ActionKind.START_REPLICA, ActionState.DONE, 6.1, "ready", new, **start),
        action(ActionKind.DRAIN, ActionState.ORDERED, 6.1, drain_why, old, ttl_s=120.0),
        state(6.1, old, "ready", "draining", drain_why),
        action(ActionKind.DRAIN, ActionState.DONE, 9.7, "no request is open", old),
        state(9.7, old, "draining", "stopped", "exit 0"),
        REBOOT,
    ]


def gpu(index: int) -> GpuView:
    lost = index == 0
    runs = {1: replica(1), 3: replica(3), 4: replica(2), 5: replica(2)}
    return GpuView(
        uuid=uuid(index),
        node=NODE,
        index=index,
        name="NVIDIA H100 80GB HBM3",
        pci=f"0000:{0x19 + 0x11 * index:02x}:00",
        state="lost" if lost else "degraded" if index == 5 else "healthy",
        health="lost" if lost else "healthy",
        phase="in_service",
        fresh=not lost,
        placeable=index in (2, 6, 7),
        stranded=False,
        holds=(HOLD,) if lost else (),
        conditions=(CONDITION,) if lost else (WARM,) if index == 5 else (),
        readings=None if lost else readings(index),
        error="GPU_IS_LOST" if lost else None,
        replica=runs.get(index),
    )


def replica_view(number: int, state: str, gpus: tuple[int, ...]) -> ReplicaView:
    return ReplicaView(
        replica=replica(number),
        deployment=replica(number).split("-")[0],
        state=state,
        url=f"http://127.0.0.1:{7430 + number}",
        node=NODE,
        gpus=tuple(uuid(index) for index in gpus),
        admitting=state == "ready",
        ready=state == "ready",
        model="smollm2",
    )


def deployment(name: str, wanted: int, ready: int, gpus: int) -> DeploymentView:
    return DeploymentView(
        name=name,
        model="smollm2",
        engine="torch",
        wanted=wanted,
        replicas=wanted,
        ready=ready,
        min_ready=1,
        gpus_per_replica=gpus,
    )


def fleet(*, paused: bool = False) -> Fleet:
    node = NodeView(
        node=NODE,
        virtual=True,
        level="repair",
        state="live",
        boot_id="1f0c8c44-0d58-4a55-a7e5-56d3f29a1f31",
        driver="570.124.06",
        version="0.1.0",
        address="http://127.0.0.1:7410",
        paused=False,
        unknown_because=None,
        seen_at=AT + 11,
        gpus=tuple(gpu(index) for index in range(8)),
    )
    return Fleet(
        nodes=(node,),
        deployments=(deployment("chat", 2, 2, 1), deployment("pair", 1, 1, 2)),
        replicas=(
            replica_view(0, "draining", (0,)),
            replica_view(1, "ready", (1,)),
            replica_view(2, "ready", (4, 5)),
            replica_view(3, "ready", (3,)),
        ),
        incidents_open=(INCIDENT,),
        actions_waiting=(REBOOT,),
        counts={"total": 8, "in_service": 7, "free": 3, "unhealthy": 1, "stranded": 0, "overcommitted": 0},
        paused=paused,
        pauses=(PauseView(scope="fleet", since=AT, why="paused by operator: change freeze"),) if paused else (),
        settled=True,
        seq=42,
    )


def told() -> Story:
    return Story(incident=INCIDENT, lines=story(), place="", halted=None, runbook="")
