"""What the driver pushes: one event set over all GPUs, waited on by a thread of its own.

Only a hint: an Xid's own words are in the kernel log. A clock event comes with every change of clocks, so a GPU's
are handed on at most every ten seconds.
"""

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from agent.sources.child import CallFailed
from agent.sources.nvml_call import Caller, address
from vocab.events import Mig
from vocab.observations import DriverEvent

WAIT_S = 1.0
RENEW_S = 30.0  # a set that leaves a GPU out is made anew after this time: the GPU may have been reset
CLOCK_GAP_S = 10.0
XID, CLOCK, PARTITION = 0x8, 0x10, 0x100
EVENT_TYPES: dict[int, str] = {  # bits of nvml.h -> our word; P-states change too often to be events
    0x1: "ecc",
    0x2: "ecc",
    XID: "xid",
    CLOCK: "clock",
    PARTITION: "other",  # MIG; its bit is the data
    0x200: "ecc",
    0x400: "ecc",
    0x800: "ecc",
    0x1000: "ecc",
    0x2000: "ecc",
    0x4000: "other",  # GPU unavailable
    0x8000: "recovery_action",
}
NO_INSTANCE = 0xFFFFFFFF


class EventWatch:
    """Tells of events by ``tell``; ``handles`` gives the GPUs that are there, by UUID."""

    def __init__(
        self, caller: Caller, handles: Callable[[], Mapping[str, Any]], tell: Callable[[DriverEvent], None]
    ) -> None:
        self._call = caller
        self._handles = handles
        self._tell = tell
        self._clocks: dict[str | None, float] = {}  # when a GPU's last clock event was handed on

    def run(self) -> None:
        """Hand on what the driver pushes, for as long as this driver can."""
        try:
            while True:
                self._follow(dict(self._handles()))
                time.sleep(WAIT_S)  # whatever ended the set, do not spin on it
        except CallFailed as failed:
            sys.stderr.write(f"corral-agent: NVML events are off: {failed}; the kernel log still tells of Xids\n")

    def _follow(self, handles: dict[str, Any]) -> None:
        """Wait on one event set until it fails, or is to be made anew to take back GPUs that it leaves out."""
        uuids = {address(handle): uuid for uuid, handle in handles.items()}
        events = self._call("nvmlEventSetCreate")
        registered = sum(self._register(handle, events) for handle in handles.values())
        until = time.monotonic() + RENEW_S if registered < len(handles) else float("inf")
        while registered and time.monotonic() < until and handles.keys() == self._handles().keys():
            try:
                pushed = self._call("nvmlEventSetWait", events, int(WAIT_S * 1000), allowed_s=WAIT_S)
            except CallFailed as failed:
                if failed.error != "TIMEOUT":  # a GPU of the set is lost: the next set goes without it
                    break
                continue
            self._take(pushed, uuids.get(address(pushed.device)))
        self._call("nvmlEventSetFree", events)

    def _take(self, pushed: Any, uuid: str | None) -> None:
        if pushed.eventType == CLOCK and not self._is_due(uuid):
            return
        kind = EVENT_TYPES.get(pushed.eventType, "other")
        data = pushed.eventData if kind == "xid" else pushed.eventType if kind in {"other", "ecc"} else None
        gi, ci = pushed.gpuInstanceId, pushed.computeInstanceId
        mig = None if gi == NO_INSTANCE else Mig(gi=gi, ci=None if ci == NO_INSTANCE else ci)
        self._tell(DriverEvent(at=time.time(), source="nvml", gpu=uuid, type=kind, data=data, mig=mig))

    def _is_due(self, uuid: str | None) -> bool:
        now = time.monotonic()
        if now - self._clocks.get(uuid, float("-inf")) < CLOCK_GAP_S:
            return False
        self._clocks[uuid] = now
        return True

    def _register(self, handle: Any, events: Any) -> bool:
        try:
            wanted = self._call("nvmlDeviceGetSupportedEventTypes", handle) & sum(EVENT_TYPES)
            self._call("nvmlDeviceRegisterEvents", handle, wanted, events)
        except CallFailed:
            return False
        return bool(wanted)
