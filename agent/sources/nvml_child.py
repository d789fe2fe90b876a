"""The process that NVML lives in: ``python -m agent.sources.nvml_child --calls FILE …``.

The agent starts it, reads frames from its standard output and never waits for it. One thread a GPU, one
for the driver's events, one that looks for GPUs that came or went; each announces every call in the call
table, so a call that hangs is seen from outside and stops one thread only. It ends when its standard input
does, that is with the agent.
"""

import argparse
import ctypes
import os
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from agent.calls import CallTable
from agent.sources.child import CallFailed, Outbox, serve
from agent.sources.frames import EVENT_SLOT, FIRST_GPU_SLOT, MAX_GPUS, NODE_SLOT, Limited, Observed, Opened, Sampled
from agent.sources.nvml_call import Caller
from agent.sources.nvml_events import EventWatch
from agent.sources.nvml_gpu import GpuReader
from agent.sources.nvml_identity import Found, Versions, identify, versions
from agent.sources.nvml_mig import listed
from agent.sources.nvml_rounds import Rounds
from vocab.observations import DriverEvent, GpuSample


class Child:
    """The threads and what they share: the API, the call table, the outbox and the inventory."""

    def __init__(self, api: Any, table: CallTable, outbox: Outbox, period_s: float, inventory_s: float) -> None:
        self.api = api
        self.table = table
        self.outbox = outbox
        self.period_s = period_s
        self.inventory_s = inventory_s
        self.call = Caller(api, table.slot(NODE_SLOT))
        self._rounds = Rounds(lambda samples, read_s: outbox.send(Sampled(samples, read_s)))
        self._threads: dict[str, threading.Thread] = {}
        self._readers: dict[str, GpuReader] = {}
        self._known: dict[str, Found] = {}  # by UUID, GPUs that are there
        self._versions = Versions()
        self._count = 0
        self._said: Opened | None = None
        self._inventory = threading.Lock()  # over _known and what was said of it
        self._doubt = threading.Event()  # the inventory may have changed

    def run(self) -> None:
        """Initialise, then look for changes of the inventory until the process ends. Raises CallFailed."""
        self.call("nvmlInit")
        self._versions = versions(self.call)
        seen = -1
        while True:
            count = self.call("nvmlDeviceGetCount")
            if count != seen or count > len(self._known) or self._doubt.is_set():
                self._doubt.clear()
                self._look(count)
            if seen < 0:
                events = EventWatch(Caller(self.api, self.table.slot(EVENT_SLOT)), self._handles, self._pushed)
                threading.Thread(target=events.run, name="events", daemon=True).start()
            seen = count
            time.sleep(self.inventory_s)

    def _look(self, count: int) -> None:
        """List the GPUs, say so if the list is new, and give each new one a thread.

        A GPU that cannot be looked up while the driver still counts it is lost, not removed: it stays.
        """
        found = {one.identity.uuid: one for index in range(count) if (one := self._identify(index))}
        with self._inventory:
            self._known = {**(self._known if count > len(found) else {}), **found}
            self._count = count
            self._say_inventory()
        for one in found.values():
            self._watch(one)

    def _say_inventory(self) -> None:
        """Tell of the inventory if it is another than was told."""
        gpus = tuple(sorted((one.identity for one in self._known.values()), key=lambda gpu: gpu.index))
        told = self._versions
        opened = Opened(told.driver, told.library, self._count, gpus, told.cuda)
        if opened != self._said:
            self._said = opened
            self.outbox.send(opened)

    def _identify(self, index: int) -> Found | None:
        """The GPU of this index; None, with a report, if it cannot be looked up."""
        try:
            return identify(self.call, index)
        except CallFailed as failed:
            if not any(one.identity.index == index for one in self._known.values()):  # else its thread tells
                unnamed = GpuSample(at=time.time(), index=index, error=failed.error, source="nvml")
                self.outbox.send(Observed(unnamed))
            return None

    def _handles(self) -> dict[str, Any]:
        return {uuid: one.handle for uuid, one in self._known.items()}

    # one GPU

    def _watch(self, one: Found) -> None:
        uuid = one.identity.uuid
        old = self._threads.get(uuid)
        if (old and old.is_alive()) or (old is None and len(self._threads) >= MAX_GPUS):
            return
        slot = list(self._threads).index(uuid) if old else len(self._threads)
        caller = Caller(self.api, self.table.slot(FIRST_GPU_SLOT + slot, uuid))
        reader = self._readers[uuid] = GpuReader(one.identity, one.handle, caller)
        thread = threading.Thread(target=self._watch_gpu, args=(reader,), name=uuid, daemon=True)
        self._threads[uuid] = thread
        thread.start()

    def _watch_gpu(self, reader: GpuReader) -> None:
        """Read one GPU each period for as long as it is in the inventory, all GPUs at the same moments."""
        said: set[str] = set()
        uuid = reader.identity.uuid
        while (known := self._known.get(uuid)) is not None:
            reader.meet(known.identity, known.handle)
            began = time.monotonic()
            number = int(began / self.period_s + 1e-6)
            sample = reader.sample(time.time(), began)
            self._rounds.put(number, sample, time.monotonic() - began)
            if sample.error is not None:
                self._doubt.set()  # gone, or back under another handle
            elif sample.processes is not None or sample.links:
                self._partitioned(reader, known)
                if reader.unsupported - said:
                    said = set(reader.unsupported)
                    self.outbox.send(Limited(tuple(sorted(name for name in said if not name.startswith("nvml")))))
            due = (max(number, int(time.monotonic() / self.period_s)) + 1) * self.period_s
            time.sleep(max(0.0, due - time.monotonic()))

    def _partitioned(self, reader: GpuReader, known: Found) -> None:
        """Tell if the GPU's MIG instances are others than the inventory says."""
        mig = listed(reader.instances)
        if mig != known.identity.mig:
            with self._inventory:
                changed = msgspec.structs.replace(known.identity, mig=mig)
                self._known = {**self._known, changed.uuid: Found(changed, known.handle)}
                self._say_inventory()

    # the driver's own events

    def _pushed(self, event: DriverEvent) -> None:
        """Hand it on; what an event hints at is read with the next sample."""
        self.outbox.send(Observed(event))
        reader = self._readers.get(event.gpu or "")
        if reader is not None and event.type != "clock":
            reader.hurry()


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
