"""The process that NVML lives in: ``python -m agent.sources.nvml_child --calls FILE …``.

The agent starts it, reads frames from its standard output and never waits for it. One thread a GPU, one
for the driver's events, one that looks for GPUs that came or went; each announces every call in the call
table, so a call that hangs is seen from outside and stops one thread only. It ends when its standard input
does, that is with the agent.
"""

import argparse
import ctypes
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from agent.calls import CallTable
from agent.sources.child import CallFailed, Outbox, serve
from agent.sources.frames import EVENT_SLOT, FIRST_GPU_SLOT, MAX_GPUS, NODE_SLOT, Limited, Observed, Opened
from agent.sources.nvml_call import Caller, text
from agent.sources.nvml_gpu import GpuReader
from vocab.observations import DriverEvent, GpuIdentity, GpuSample

EVENT_WAIT_S = 1.0
RENEW_S = 30.0  # a set that leaves a GPU out is made anew after this time: the GPU may have been reset
EVENT_TYPES: dict[int, str] = {  # bits of nvml.h -> our word; clocks and P-states change too often to be events
    0x1: "ecc",
    0x2: "ecc",
    0x8: "xid",
    0x200: "ecc",
    0x400: "ecc",
    0x800: "ecc",
    0x1000: "ecc",
    0x2000: "ecc",
    0x4000: "other",
    0x8000: "recovery_action",
}


class Child:
    """The threads and what they share: the API, the call table, the outbox and the inventory."""

    def __init__(self, api: Any, table: CallTable, outbox: Outbox, period_s: float, inventory_s: float) -> None:
        self.api = api
        self.table = table
        self.outbox = outbox
        self.period_s = period_s
        self.inventory_s = inventory_s
        self.call = Caller(api, table.slot(NODE_SLOT))
        self._threads: dict[str, threading.Thread] = {}
        self._known: dict[str, tuple[GpuIdentity, Any]] = {}  # UUID -> identity and handle, of GPUs that are there
        self._said: Opened | None = None

    def run(self) -> None:
        """Initialise, then look for changes of the inventory until the process ends. Raises CallFailed."""
        self.call("nvmlInit")
        driver, library = text(self.call("nvmlSystemGetDriverVersion")), text(self.call("nvmlSystemGetNVMLVersion"))
        seen = -1
        while True:
            count = self.call("nvmlDeviceGetCount")
            if count != seen or count > len(self._known):
                self._look(driver, library, count)
            if seen < 0:
                threading.Thread(target=self._watch_events, name="events", daemon=True).start()
            seen = count
            time.sleep(self.inventory_s)

    def _look(self, driver: str, library: str, count: int) -> None:
        """List the GPUs, say so if the list is new, and give each new one a thread.

        A GPU that cannot be looked up while the driver still counts it is lost, not removed: it stays.
        """
        found = {pair[0].uuid: pair for index in range(count) if (pair := self._identify(index))}
        self._known = {**(self._known if count > len(found) else {}), **found}
        gpus = tuple(sorted((identity for identity, _ in self._known.values()), key=lambda gpu: gpu.index))
        opened = Opened(driver, library, count, gpus)
        if opened != self._said:
            self._said = opened
            self.outbox.send(opened)
        for identity, handle in found.values():
            self._watch(identity, handle)

    def _identify(self, index: int) -> tuple[GpuIdentity, Any] | None:
        """A GPU's identity and handle; None, with a report, if it cannot be looked up."""
        try:
            handle = self.call("nvmlDeviceGetHandleByIndex", index)
            pci = self.call("nvmlDeviceGetPciInfo", handle)
            uuid, name = text(self.call("nvmlDeviceGetUUID", handle)), text(self.call("nvmlDeviceGetName", handle))
        except CallFailed as failed:
            if not any(identity.index == index for identity, _ in self._known.values()):  # else its thread tells
                unnamed = GpuSample(at=time.time(), index=index, error=failed.error, source="nvml")
                self.outbox.send(Observed(unnamed))
            return None
        bus = f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}"
        return GpuIdentity(uuid=uuid, index=index, pci=bus, serial=self._serial(handle), name=name), handle

    def _serial(self, handle: Any) -> str | None:
        try:
            return text(self.call("nvmlDeviceGetSerial", handle))
        except CallFailed:
            return None  # consumer boards have none

    def _watch(self, identity: GpuIdentity, handle: Any) -> None:
        old = self._threads.get(identity.uuid)
        if (old and old.is_alive()) or (old is None and len(self._threads) >= MAX_GPUS):
            return
        slot = list(self._threads).index(identity.uuid) if old else len(self._threads)
        caller = Caller(self.api, self.table.slot(FIRST_GPU_SLOT + slot, identity.uuid))
        reader = GpuReader(identity, handle, caller)
        thread = threading.Thread(target=self._watch_gpu, args=(reader,), name=identity.uuid, daemon=True)
        self._threads[identity.uuid] = thread
        thread.start()

    def _watch_gpu(self, reader: GpuReader) -> None:
        """Read one GPU each period for as long as it is in the inventory."""
        said: set[str] = set()
        due = time.monotonic()
        while reader.identity.uuid in self._known:
            self.outbox.send(Observed(reader.sample(time.time(), time.monotonic())))
            if reader.unsupported - said:
                said = set(reader.unsupported)
                self.outbox.send(Limited(tuple(sorted(said))))
            due = max(due + self.period_s, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))

    # the driver's own events

    def _watch_events(self) -> None:
        """Hand on what the driver pushes, for as long as this driver can."""
        caller = Caller(self.api, self.table.slot(EVENT_SLOT))
        try:
            while True:
                self._follow_events(caller, {uuid: handle for uuid, (_, handle) in self._known.items()})
                time.sleep(EVENT_WAIT_S)  # whatever ended the set, do not spin on it
        except CallFailed as failed:
            sys.stderr.write(f"corral-agent: NVML events are off: {failed}; the kernel log still tells of Xids\n")

    def _follow_events(self, caller: Caller, handles: dict[str, Any]) -> None:
        """Wait on one event set until it fails, or is to be made anew to take back GPUs that it leaves out."""
        uuids = {ctypes.cast(handle, ctypes.c_void_p).value: uuid for uuid, handle in handles.items()}
        events = caller("nvmlEventSetCreate")
        registered = sum(self._register(caller, handle, events) for handle in handles.values())
        until = time.monotonic() + RENEW_S if registered < len(handles) else float("inf")
        while registered and time.monotonic() < until and handles.keys() == self._known.keys():
            try:
                pushed = caller("nvmlEventSetWait", events, int(EVENT_WAIT_S * 1000), allowed_s=EVENT_WAIT_S)
            except CallFailed as failed:
                if failed.error != "TIMEOUT":  # a GPU of the set is lost: the next set goes without it
                    break
                continue
            uuid = uuids.get(ctypes.cast(pushed.device, ctypes.c_void_p).value)
            kind = EVENT_TYPES.get(pushed.eventType, "other")
            event = DriverEvent(at=time.time(), source="nvml", gpu=uuid, type=kind, data=pushed.eventData)
            self.outbox.send(Observed(event))
        caller("nvmlEventSetFree", events)

    def _register(self, caller: Caller, handle: Any, events: Any) -> bool:
        try:
            wanted = caller("nvmlDeviceGetSupportedEventTypes", handle) & sum(EVENT_TYPES)
            caller("nvmlDeviceRegisterEvents", handle, wanted, events)
        except CallFailed:
            return False
        return bool(wanted)


def _load(library: str | None) -> Any:
    """The module pynvml, on the library at this path if one is given. Raises SourceDown."""
    try:
        import pynvml
    except ImportError as error:
        raise CallFailed("import pynvml", "PACKAGE_NOT_FOUND") from error
    if library:
        try:
            pynvml.nvmlLib = ctypes.CDLL(library)  # the loader runs only where this is None
        except OSError as error:
            raise CallFailed(str(error), "LIBRARY_NOT_FOUND") from error
    return pynvml


def main() -> int:
    """The process: exit 1 after a Failed frame, else it runs until the agent ends it."""
    parser = argparse.ArgumentParser(prog="agent.sources.nvml_child")
    parser.add_argument("--calls", type=Path, required=True, help="the call table that the agent made")
    parser.add_argument("--library", help="path of libnvidia-ml.so.1 (default: the linker's search)")
    parser.add_argument("--period-s", type=float, default=1.0, help="seconds between two reads of a GPU")
    parser.add_argument("--inventory-s", type=float, default=10.0, help="seconds between two counts of the GPUs")
    options = parser.parse_args()

    def work(outbox: Outbox) -> None:
        table = CallTable.open(options.calls)
        Child(_load(options.library), table, outbox, options.period_s, options.inventory_s).run()

    return serve(work)


if __name__ == "__main__":
    os._exit(main())  # not sys.exit: threads may be inside the driver
