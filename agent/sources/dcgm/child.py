"""The process that DCGM's library lives in: ``python -m agent.sources.dcgm.child --calls FILE --bindings FOLDER …``.

The agent starts it, reads frames from its standard output and never waits for it. One thread reads, one asks
for the health watches (which can take a minute). It reads what the agent says it needs: a line
``need NAME,NAME…`` on its standard input. When the connection breaks or the GPUs change it ends: the next
child makes groups and watches anew. It ends when its standard input does, that is with the agent.
"""

import argparse
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent.calls import CallTable
from agent.sources.child import CallFailed, Outbox, serve
from agent.sources.dcgm.bindings import Bindings, Caller, load
from agent.sources.dcgm.engine import Engine, is_local
from agent.sources.dcgm.health import Health
from agent.sources.dcgm.names import GONE, GPU_FAKE, GPU_OK
from agent.sources.dcgm.policy import Policy
from agent.sources.dcgm.reader import Reader
from agent.sources.dcgm.watches import Watches
from agent.sources.dcgm_fields import BY_NAME, COMPUTE_CAPABILITY, NAMES, XID
from agent.sources.frames import EVENT_SLOT, NODE_SLOT, Limited, Observed, Opened
from vocab.observations import Check, DriverEvent, GpuIdentity, GpuSample

DRILL_S = 45.0  # a health check comes each 30 s; shorter than a GPU may be without a reading
MOST_DRILLS = 16
HOPPER = 9  # from this compute capability on DCGM profiles through GPM, which no tool holds alone
TIMEOUT = "TIMEOUT"  # of a health check: it was long, the connection is as good as before
PROFILING = frozenset(name for name, row in BY_NAME.items() if row.profiling)


class Options(msgspec.Struct, frozen=True):
    """How the child is to work; seconds all."""

    address: str
    profiling: str = "auto"  # auto: only where it disturbs nobody; on; off
    period_s: float = 1.0
    health_s: float = 30.0
    inventory_s: float = 10.0
    retry_s: float = 60.0  # a watch that was refused is tried again


class Drill(msgspec.Struct, frozen=True):
    """A value to be put into the engine on purpose."""

    gpu: str
    field: int
    value: float


class Needs:
    """What the agent wants to be read, and to be put in, as its lines say."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()
        self.drills: deque[Drill] = deque(maxlen=MOST_DRILLS)

    def hear(self, line: str) -> None:
        """``need a,b``: these readings from now on. ``drill JSON``: once."""
        word, _, rest = line.partition(" ")
        if word == "need":
            self.names = NAMES.intersection(rest.split(","))
        elif word == "drill":
            self.drills.append(msgspec.json.decode(rest, type=Drill))


class Child:
    """One connection from its start to its end."""

    def __init__(self, bindings: Bindings, table: CallTable, outbox: Outbox, options: Options, needs: Needs) -> None:
        self._options = options
        self._outbox = outbox
        self._needs = needs
        self._engine = Engine(Caller(bindings, table.slot(NODE_SLOT)), options.address)
        self._beside = self._engine.beside(Caller(bindings, table.slot(EVENT_SLOT)))
        self._troubles: dict[str, str] = {}  # part -> error
        self._said: Limited | None = None
        self._taken: frozenset[str] | None = None  # the needs that are watched
        self._made_up: set[tuple[str | None, str]] = set()  # GPU and check of problems that began with a drill
        self._drilled: dict[str, float] = {}  # GPU -> until when what the engine says of it may be a drill

    def run(self) -> None:
        """Read until the connection ends. Raises CallFailed."""
        engine, known = self._engine, self._engine.gpus()
        gpus = {one.number: one.gpu for one in known if one.gpu}
        group, members = engine.group(f"corral-{os.getpid()}", gpus)
        driver = next((one.driver for one in known if one.driver), None)
        identities = tuple(sorted(gpus.values(), key=lambda gpu: gpu.index))
        self._outbox.send(Opened(driver, engine.version() or None, len(known), identities))
        pushed = Policy(engine, group, gpus, self._send).start()
        watches = Watches(engine, group, f"corral-{os.getpid()}", () if pushed else (XID,))
        reader = Reader(engine, watches, gpus, is_local(self._options.address))
        if gpus:
            health = Health(self._beside, group, gpus)
            threading.Thread(target=self._watch_health, args=(health,), name="health", daemon=True).start()
        self._read(reader, watches, {one.number for one in known}, gpus.keys() - members)

    def _read(self, reader: Reader, watches: Watches, numbers: set[int], left_out: set[int]) -> None:
        options = self._options
        inventory_at = retry_at = 0.0
        due = time.monotonic()
        while True:
            now = time.monotonic()
            if now >= inventory_at:
                self._compare(numbers, left_out)
                inventory_at = now + options.inventory_s
            needed = self._needs.names - reader.never
            if self._taken != needed or (watches.refused and now >= retry_at):
                self._taken = needed
                watches.set(self._permitted(needed, tuple(reader.gpus)))
                retry_at = now + options.retry_s
            self._inject(reader.gpus)
            samples, events = reader.read(time.time())
            for event in events:
                self._send(event)
            for sample in samples:
                self._send(sample)
            self._say_limits(watches)
            due = max(due + options.period_s, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))

    def _inject(self, gpus: Mapping[int, GpuIdentity]) -> None:
        """Do the drills that were asked for; what cannot be done is said in the log."""
        while self._needs.drills:
            drill = self._needs.drills.popleft()
            number = next((number for number, gpu in gpus.items() if gpu.uuid == drill.gpu), None)
            self._drilled[drill.gpu] = time.monotonic() + DRILL_S
            try:
                if number is None:
                    raise CallFailed("drill", "GPU_NOT_FOUND")
                self._engine.inject(number, drill.field, drill.value)
            except CallFailed as failed:
                if failed.error in GONE:
                    raise
                sys.stderr.write(f"corral-agent: drill of {drill.gpu}: {failed}\n")

    def _send(self, seen: GpuSample | DriverEvent | Check) -> None:
        """To the agent. While a drill is on, readings of its GPU are left out, and what else is said is marked.

        A problem that began with a drill is one until its own check passes, however long the engine remembers it.
        """
        is_on = seen.gpu is not None and time.monotonic() < self._drilled.get(seen.gpu, 0.0)
        if isinstance(seen, GpuSample):
            if not is_on:
                self._outbox.send(Observed(seen))
            return
        if isinstance(seen, Check):
            key = (seen.gpu, seen.check)
            is_on = seen.result == "problem" and (is_on or key in self._made_up)
            (self._made_up.add if is_on else self._made_up.discard)(key)
        self._outbox.send(Observed(msgspec.structs.replace(seen, drill=True) if is_on else seen))

    def _compare(self, numbers: set[int], left_out: set[int]) -> None:
        """A new GPU, or a lost one that is back, is in no group of ours: begin anew."""
        back = any(self._engine.status(number) in {GPU_OK, GPU_FAKE} for number in left_out)
        if back or set(self._engine.numbers()) != numbers:
            raise CallFailed("dcgmGetAllDevices", "INVENTORY_CHANGED")

    def _permitted(self, names: frozenset[str], numbers: tuple[int, ...]) -> frozenset[str]:
        return names if not names & PROFILING or self._may_profile(numbers) else names - PROFILING

    def _may_profile(self, numbers: tuple[int, ...]) -> bool:
        if self._options.profiling != "auto":
            return self._options.profiling == "on"
        try:
            values = list(self._engine.values(numbers, [COMPUTE_CAPABILITY], live=True))
        except CallFailed as failed:
            if failed.error in GONE:
                raise
            return False
        return bool(values) and all(value.number is not None and int(value.number) >> 16 >= HOPPER for value in values)

    def _say_limits(self, watches: Watches) -> None:
        reasons = [*watches.refused.values(), *self._troubles.values()]
        limited = Limited(tuple(sorted(watches.unknown)), reasons[0] if reasons else None)
        if limited != (self._said or Limited(())):
            self._said = limited
            self._outbox.send(limited)

    # health

    def _watch_health(self, health: Health) -> None:
        """Check for as long as the connection lives; the reading thread sees its end."""
        started = False
        while True:
            try:
                if not started:
                    health.start()
                    started = True
                for check in health.check(time.time()):
                    self._send(check)
                self._troubles.pop("health", None)
            except CallFailed as failed:
                if failed.error in GONE and failed.error != TIMEOUT:
                    return
                self._troubles["health"] = failed.error
            time.sleep(self._options.health_s)


def main() -> int:
    """The process: exit 1 after a Failed frame, else it runs until the agent ends it."""
    parser = argparse.ArgumentParser(prog="agent.sources.dcgm.child")
    parser.add_argument("--calls", type=Path, required=True, help="the call table that the agent made")
    parser.add_argument("--bindings", type=Path, required=True, help="the folder of dcgm_agent.py")
    parser.add_argument("--address", required=True, help="HOST:PORT, unix://PATH or embedded")
    parser.add_argument("--profiling", choices=("auto", "on", "off"), default="auto")
    parser.add_argument("--period-s", type=float, default=1.0, help="seconds between two reads")
    parser.add_argument("--health-s", type=float, default=30.0, help="seconds between two health checks")
    parser.add_argument("--inventory-s", type=float, default=10.0, help="seconds between two looks at the list of GPUs")
    parser.add_argument("--retry-s", type=float, default=60.0, help="seconds until a refused watch is tried again")
    chosen = vars(parser.parse_args())
    calls, folder, needs = chosen.pop("calls"), chosen.pop("bindings"), Needs()

    def work(outbox: Outbox) -> None:
        Child(load(folder), CallTable.open(calls), outbox, Options(**chosen), needs).run()

    return serve(work, needs.hear)


if __name__ == "__main__":
    os._exit(main())  # not sys.exit: threads may be inside the library
