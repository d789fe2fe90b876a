"""Observations for tests: one node of eight GPUs, and what happens on it."""

from typing import Any

from agent.probes.scene import Scene
from vocab.events import Event
from vocab.messages import ClearedItem, EventItem
from vocab.observations import DriverCall, GpuIdentity, GpuSample, KernelRecord, NodeSeen, ReplicaSeen, SourceState
from vocab.readings import Readings

NODE = "n1"
BOOT = "boot-1"
BOOTED = -10_000.0  # long ago
XID_79 = "NVRM: Xid (PCI:{pci}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def uuid(index: int) -> str:
    return f"GPU-{index:08x}-0000-0000-0000-000000000000"


def pci(index: int) -> str:
    return f"0000:{0x10 + index:02x}:00"


def identity(index: int, /, **changes: Any) -> GpuIdentity:
    return GpuIdentity(**({"uuid": uuid(index), "index": index, "pci": pci(index), "name": "NVIDIA H100"} | changes))


def inventory(at: float = 0.0, gpus: tuple[int, ...] = tuple(range(8)), **changes: Any) -> NodeSeen:
    usual = {"boot_id": BOOT, "boot_at": BOOTED, "driver": "565.57.01", "gpus": tuple(identity(i) for i in gpus)}
    return NodeSeen(at=at, node=NODE, **(usual | changes))


def scene(at: float = 0.0, **changes: Any) -> Scene:
    made = Scene(node=NODE)
    made.see(inventory(at, **changes))
    return made


def sample(at: float, index: int = 0, error: str | None = None, **readings: Any) -> GpuSample:
    return GpuSample(
        at=at, node=NODE, gpu=uuid(index), error=error, source="nvml", readings=None if error else Readings(**readings)
    )


def record(at: float, line: str, seq: int | None = None, **changes: Any) -> KernelRecord:
    usual = {"kernel_s": at - BOOTED, "facility": 0}
    return KernelRecord(at=at, node=NODE, line=line, seq=seq, **(usual | changes))


def xid(at: float, code: int, payload: str, index: int = 0, seq: int | None = None, **changes: Any) -> KernelRecord:
    return record(at, f"NVRM: Xid (PCI:{pci(index)}): {code}, {payload}", seq, **changes)


def fallen(at: float, index: int = 0, seq: int | None = None, **changes: Any) -> KernelRecord:
    return record(at, XID_79.format(pci=pci(index)), seq, **changes)


def replica(at: float, **changes: Any) -> ReplicaSeen:
    usual = {"replica": "r1", "deployment": "chat", "gpus": (uuid(0),), "phase": "ready"}
    return ReplicaSeen(at=at, node=NODE, **(usual | changes))


def call(
    at: float, state: str, name: str, gpu: int | None = 0, error: str | None = None, pid: int | None = None
) -> DriverCall:
    whose = None if gpu is None else uuid(gpu)
    return DriverCall(at=at, node=NODE, gpu=whose, call=name, state=state, error=error, pid=pid)


def source(at: float, state: str, name: str = "nvml", error: str | None = None) -> SourceState:
    return SourceState(at=at, node=NODE, source=name, state=state, error=error)


def events(items: Any) -> list[Event]:
    return [item.event for item in items if isinstance(item, EventItem)]


def codes(items: Any) -> list[str]:
    return [event.code for event in events(items)]


def cleared(items: Any) -> list[str]:
    return [item.cleared.code for item in items if isinstance(item, ClearedItem)]
