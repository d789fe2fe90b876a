"""What a fleet of 12,500 nodes with 8 GPUs each costs one controller, and how fast it decides there.

    python -m tests.bench.fleet_scale [--nodes 12500] [--seconds 60] [--faults 750] [--events 200000] [--database URL]

On PostgreSQL the password is where PGPASSFILE says. A real controller process on loopback, and a load generator that
speaks HTTP over kept connections. In this order:

    join        every node reports for the first time, with its inventory and the readings of its GPUs
    settle      heartbeats, until those who fell silent while the others joined are live again and nobody waits
    heartbeat   every node reports each 10 s, with the readings of three GPUs (agents of an idle fleet tell of each at
                least every 32 s): processor time and memory of the controller
    fault       single faults beside that: from the report until it is answered, which is when the hold is on disk
    storm       faults on as many nodes at one moment: until the last is answered
    ask         what gateways and people ask, beside the heartbeats
    restart     kill -9, start: until reports are taken again, and until every node is seen live again
    ingest      batches of 500 events of one node after another, each answered once it is on disk
    history     questions over the events that are stored then
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.bench.fleet_load import Caller, batch, first, joined
from tests.ports import free_ports

GPUS = 8
BEAT_S = 10.0
CALLERS = 64
ROOT = Path(__file__).resolve().parents[2]


class Fleet:
    """The nodes, and the connections over which they speak."""

    def __init__(self, port: int, nodes: int, readings: int) -> None:
        self.readings = readings
        self.names = [f"gpu-{n:05d}" for n in range(nodes)]
        self.positions = dict.fromkeys(self.names, 0)
        self.port = port
        self.waiting: set[str] = set()  # nodes whose last heartbeat was not answered: they send no other one
        self.sent_away = 0  # reports that were answered with 503 and went again
        self.callers: asyncio.Queue[Caller] = asyncio.Queue()

    async def connect(self) -> None:
        """Open the connections anew."""
        self.callers = asyncio.Queue()
        for _ in range(CALLERS):
            self.callers.put_nowait(await Caller.open(self.port))

    async def call(self, method: str, path: str, body: bytes = b"") -> tuple[float, bytes]:
        """One request over the next free connection: seconds and the answer's body."""
        caller = await self.callers.get()
        try:
            began = time.perf_counter()
            answer = await caller.call(method, path, body)
            return time.perf_counter() - began, answer
        finally:
            self.callers.put_nowait(caller)

    async def report(self, body: bytes) -> float:
        """A batch; seconds until it was stored, with all that it took where it was told to come again."""
        began = time.perf_counter()
        while True:
            try:
                await self.call("POST", "/api/v1/agent/batch", body)
                return time.perf_counter() - began
            except RuntimeError as error:
                if "503" not in str(error):
                    raise
                self.sent_away += 1
                await asyncio.sleep(1.0)

    async def beat(self, stop: asyncio.Event) -> list[float]:
        """Every node in its turn, spread over the period, until told to stop."""
        took: list[float] = []
        tasks: set[asyncio.Task[float]] = set()
        began, count = time.monotonic(), 0
        while not stop.is_set():
            due = int((time.monotonic() - began) / BEAT_S * len(self.names))
            for number in range(count, due):
                name = self.names[number % len(self.names)]
                if name not in self.waiting:
                    tasks.add(asyncio.create_task(self._beat(name, number // len(self.names) * self.readings % GPUS)))
            count = max(count, due)
            done = {task for task in tasks if task.done()}
            took += [task.result() for task in done]
            tasks -= done
            await asyncio.sleep(0.02)
        took += await asyncio.gather(*tasks)
        return took

    async def _beat(self, name: str, gpu: int) -> float:
        self.waiting.add(name)
        try:
            return await self.report(batch(name, gpu=gpu, readings=self.readings))
        finally:
            self.waiting.discard(name)

    async def calm(self) -> float:
        """Wait, beside heartbeats, until hardly any waits for its answer; seconds that it took."""
        began = time.monotonic()
        while True:
            await asyncio.sleep(BEAT_S / 2)
            if len(self.waiting) <= CALLERS // 2:
                return time.monotonic() - began

    def fault(self, name: str, gpu: int, code: str, count: int = 1) -> bytes:
        """A batch with this many events, each of another moment."""
        self.positions[name] += count
        return batch(name, gpu=gpu, events=(code, count, self.positions[name]))


async def at_once(calls: Sequence[Awaitable[float]]) -> tuple[float, list[float]]:
    """Seconds until all have ended, and of each."""
    began = time.perf_counter()
    took = await asyncio.gather(*calls)
    return time.perf_counter() - began, list(took)


def quantiles(took: Sequence[float]) -> str:
    """p50 and p99 in ms."""
    ordered = sorted(took)
    return f"p50 {statistics.median(ordered) * 1e3:8.1f} ms   p99 {ordered[int(len(ordered) * 0.99)] * 1e3:8.1f} ms"


class Process:
    """The controller's: what it has cost."""

    def __init__(self, config: Path) -> None:
        command = [sys.executable, "-m", "controller", "--config", str(config)]
        self.popen = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)

    @property
    def cpu_s(self) -> float:
        """Processor seconds so far."""
        fields = Path(f"/proc/{self.popen.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def peak_mb(self) -> float:
        """The most memory that it ever had."""
        status = Path(f"/proc/{self.popen.pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024

    def kill(self) -> None:
        """As the kernel would."""
        self.popen.kill()
        self.popen.wait()


async def ready(port: int) -> None:
    """Wait until the controller takes reports."""
    while True:
        try:
            caller = await Caller.open(port)
            await caller.call("GET", "/readyz")
            return
        except (OSError, RuntimeError):
            await asyncio.sleep(0.1)


@asynccontextmanager
async def beating(fleet: Fleet) -> AsyncIterator[list[float]]:
    """Heartbeats beside what is done within; their times are filled in at the end."""
    stop, took = asyncio.Event(), []
    task = asyncio.create_task(fleet.beat(stop))
    try:
        yield took
    finally:
        stop.set()
        took += await task


async def measure(options: argparse.Namespace, folder: Path) -> None:
    """All of it, printed as it comes."""
    (port,) = free_ports(1)
    fleet, config = Fleet(port, options.nodes, options.readings), folder / "controller.toml"
    database = f'database = "{options.database}"\n' if options.database else ""
    config.write_text(f'listen = "127.0.0.1:{port}"\nstate_dir = "{folder}/state"\n{database}')
    print(f"{processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {options.nodes} nodes of {GPUS} GPUs")
    process = Process(config)
    try:
        await ready(port)
        await fleet.connect()
        all_s, _ = await at_once([fleet.report(first(name, GPUS)) for name in fleet.names])
        say("join", f"{all_s:6.1f} s for all   {process.cpu_s:6.1f} s of processor")
        await heartbeats(fleet, process, options.seconds)
        await faults(fleet, options.faults)
        await questions(fleet)
        process.kill()
        process = await restart(fleet, config)
        await ingest(fleet, options.events)
        await history(fleet)
        say("again", f"{fleet.sent_away} reports were told to come again")
    finally:
        process.kill()


async def heartbeats(fleet: Fleet, process: Process, seconds: float) -> None:
    """What the quiet fleet costs."""
    async with beating(fleet):
        settled_s = await fleet.calm()  # who joined first has fallen silent when the last one joined, and comes back
    say("settle", f"{settled_s:6.1f} s until all are live and answered at once")
    async with beating(fleet) as took:
        await asyncio.sleep(BEAT_S)
        cpu, began = process.cpu_s, time.monotonic()
        await asyncio.sleep(seconds)
        share = (process.cpu_s - cpu) / (time.monotonic() - began)
    say("heartbeat", f"{share:6.2f} cores   {process.peak_mb:6.0f} MB at most   {quantiles(took)}")


async def faults(fleet: Fleet, most: int) -> None:
    """One at a time, then many at one moment; all of them find the budget of cordons used up after a few."""
    async with beating(fleet):
        single = []
        for name in fleet.names[:: max(1, len(fleet.names) // 100)][:100]:
            single.append(await fleet.report(fleet.fault(name, 0, "xid:48")))
            await asyncio.sleep(0.05)
        say("fault", f"100 single ones   {quantiles(single)}")
        names = fleet.names[1 :: max(1, len(fleet.names) // most)][:most]
        all_s, took = await at_once([fleet.report(fleet.fault(name, 1, "xid:95")) for name in names])
        say("storm", f"{all_s:6.2f} s for {len(names)}   {quantiles(took)}")


async def questions(fleet: Fleet) -> None:
    """What is asked often."""
    for path in ("/api/v1/replicas", "/api/v1/gpus?limit=100", "/api/v1/incidents", "/api/v1/holds", "/metrics"):
        async with beating(fleet):
            took, size = [], 0
            for _ in range(20):
                seconds, answer = await fleet.call("GET", path)
                took.append(seconds)
                size = len(answer)
                await asyncio.sleep(0.2)
        say("ask", f"{quantiles(took)}   {size / 1024:8.0f} KiB   {path}")


async def restart(fleet: Fleet, config: Path) -> Process:
    """From the start of a new process on the same database."""
    began = time.perf_counter()
    process = Process(config)
    await ready(fleet.port)
    ready_s = time.perf_counter() - began
    await fleet.connect()
    await at_once([fleet.report(batch(name, gpu=0)) for name in fleet.names])
    _, answer = await fleet.call("GET", "/api/v1/fleet")
    seen = joined(answer)
    say(
        "restart",
        f"{ready_s:6.1f} s until reports are taken   {time.perf_counter() - began:6.1f} s until {seen} are live",
    )
    return process


async def ingest(fleet: Fleet, count: int) -> None:
    """Events that lead to nothing, 500 a batch, 8 batches on their way."""
    bodies = [fleet.fault(fleet.names[n % len(fleet.names)], n % GPUS, "xid:13", 500) for n in range(count // 500)]
    began = time.perf_counter()
    for start in range(0, len(bodies), 8):
        await asyncio.gather(*(fleet.report(body) for body in bodies[start : start + 8]))
    all_s = time.perf_counter() - began
    say("ingest", f"{count / all_s:8.0f} events/s   {count} in {all_s:.1f} s")


async def history(fleet: Fleet) -> None:
    """Over all events that are stored."""
    name = fleet.names[3]
    for query in (f"node={name}", "code=xid:95", "severity=critical", f"gpu=GPU-{name}-1"):
        took = [(await fleet.call("GET", f"/api/v1/events?limit=100&{query}"))[0] for _ in range(20)]
        say("history", f"{quantiles(took)}   {query}")


def processor() -> str:
    """The name of this machine's processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(": ", 1)[1] for line in lines if line.startswith("model name")), "unknown processor")


def say(what: str, text: str) -> None:
    """A row of the table, at once."""
    print(f"{what:10} {text}", flush=True)


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=12_500)
    parser.add_argument("--seconds", type=float, default=60.0, help="of heartbeats")
    parser.add_argument("--readings", type=int, default=3, help="GPUs told of in one heartbeat")
    parser.add_argument("--faults", type=int, default=750, help="at one moment")
    parser.add_argument("--events", type=int, default=200_000, help="to store in batches")
    parser.add_argument("--database", help="URL of a PostgreSQL database; left out: SQLite")
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(parser.parse_args(), Path(folder)))


if __name__ == "__main__":
    main()
