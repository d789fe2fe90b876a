"""What a fleet of 12,500 nodes with 8 GPUs each costs one controller, and how fast it decides there.

    python -m tests.bench.fleet_scale [--nodes 12500] [--seconds 60] [--faults 750] [--events 200000] [--database URL]

On PostgreSQL the password is where PGPASSFILE says. A real controller process on loopback, and a load generator that
speaks HTTP over kept connections: heartbeats have some, and so have faults and questions, which in a fleet come over
their own. In this order, each step with a deadline, after which its row says so and the next one begins:

    join        every node reports for the first time, with its inventory and the readings of its GPUs, and beats from
                then on
    heartbeat   every node reports each 10 s, with the readings of three GPUs (agents of an idle fleet tell of each at
                least every 32 s): processor time and memory of the controller
    fault       single faults beside that: from the report until it is answered, which is when the hold is on disk
    storm       faults on as many nodes at one moment: until the last is answered
    ask         what gateways and people ask, beside the heartbeats
    restart     kill -9, start: until reports are taken again, and until every node is seen live again
    ingest      batches of 500 events of one node after another, each answered once it is on disk; as all that follows
                a restart, beside the heartbeats
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
from collections.abc import Awaitable, Sequence
from pathlib import Path

import uvloop

from tests.bench.fleet_load import Caller, batch, first, joined
from tests.bench.fleet_nodes import BEAT_S, GPUS, Fleet, beating
from tests.ports import free_ports

QUESTIONS = ("/api/v1/replicas", "/api/v1/gpus?limit=100", "/api/v1/incidents", "/api/v1/holds", "/metrics")
ROOT = Path(__file__).resolve().parents[2]


async def at_once(calls: Sequence[Awaitable[float]]) -> tuple[float, list[float]]:
    """Seconds until all have ended, and of each."""
    began = time.perf_counter()
    took = await asyncio.gather(*calls)
    return time.perf_counter() - began, list(took)


def quantiles(took: Sequence[float]) -> str:
    """p50 and p99 in ms."""
    if not took:
        return "none was answered"
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


async def step(name: str, limit_s: float, work: Awaitable[None]) -> None:
    """Do it, or say that it was not done in time."""
    try:
        async with asyncio.timeout(limit_s):
            await work
    except TimeoutError:
        say(name, f"not done within {limit_s:g} s")


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
        async with beating(fleet):
            await step("join", 120, join(fleet, process))
            await step("heartbeat", options.seconds + 3 * BEAT_S, heartbeats(fleet, process, options.seconds))
            await step("fault", 45, faults(fleet))
            await step("storm", 30, storm(fleet, options.faults))
            for path in QUESTIONS:
                await step("ask", 20, questions(fleet, path))
        process.kill()
        fleet.joined.clear()
        fleet.connect()
        async with beating(fleet):
            process = Process(config)
            await step("restart", 90, restart(fleet))
            await step("ingest", 60, ingest(fleet, options.events))
            await step("history", 20, history(fleet))
        say("again", f"{fleet.sent_away} reports were told to come again")
    finally:
        process.kill()


async def join(fleet: Fleet, process: Process) -> None:
    """All at one time."""
    all_s, _ = await at_once([fleet.join(name, first(name, GPUS)) for name in fleet.names])
    say("join", f"{all_s:6.1f} s for all   {process.cpu_s:6.1f} s of processor")
    calm_s = await fleet.calm()
    say("settle", f"{calm_s:6.1f} s until heartbeats are answered at once")


async def heartbeats(fleet: Fleet, process: Process, seconds: float) -> None:
    """What the quiet fleet costs."""
    await asyncio.sleep(BEAT_S)
    fleet.took.clear()
    cpu, began = process.cpu_s, time.monotonic()
    await asyncio.sleep(seconds)
    share = (process.cpu_s - cpu) / (time.monotonic() - began)
    say("heartbeat", f"{share:6.2f} cores   {process.peak_mb:6.0f} MB at most   {quantiles(fleet.took)}")


async def faults(fleet: Fleet) -> None:
    """One at a time; all of them find the budget of cordons used up after a few."""
    single = []
    try:
        for name in fleet.names[:: max(1, len(fleet.names) // 100)][:100]:
            single.append(await fleet.report(fleet.fault(name, 0, "xid:48")))
            await asyncio.sleep(0.05)
    finally:
        say("fault", f"{len(single)} single ones   {quantiles(single)}")


async def storm(fleet: Fleet, most: int) -> None:
    """Many at one moment, each over its own connection."""
    names = fleet.names[1 :: max(1, len(fleet.names) // most)][:most]
    fleet.connect_reports(len(names))
    await fleet.reports.open()
    all_s, took = await at_once([fleet.report(fleet.fault(name, 1, "xid:95")) for name in names])
    say("storm", f"{all_s:6.2f} s for {len(names)}   {quantiles(took)}")


async def questions(fleet: Fleet, path: str) -> None:
    """What is asked often."""
    took, size = [], 0
    try:
        for _ in range(20):
            seconds, answer = await fleet.ask(path)
            took.append(seconds)
            size = len(answer)
            await asyncio.sleep(0.2)
    finally:
        say("ask", f"{quantiles(took)}   {size / 1024:8.0f} KiB   {path}")


async def restart(fleet: Fleet) -> None:
    """From the start of a new process on the same database."""
    began = time.perf_counter()
    await ready(fleet.port)
    ready_s = time.perf_counter() - began
    await at_once([fleet.join(name, batch(name, gpu=0)) for name in fleet.names])
    _, answer = await fleet.ask("/api/v1/fleet")
    live_s = time.perf_counter() - began
    say("restart", f"{ready_s:6.1f} s until reports are taken   {live_s:6.1f} s until {joined(answer)} are live")


async def ingest(fleet: Fleet, count: int) -> None:
    """Events that lead to nothing, 500 a batch, 8 batches on their way."""
    bodies = [fleet.fault(fleet.names[n % len(fleet.names)], n % GPUS, "xid:13", 500) for n in range(count // 500)]
    began, stored = time.perf_counter(), 0
    try:
        for start in range(0, len(bodies), 8):
            some = bodies[start : start + 8]
            await asyncio.gather(*(fleet.report(body) for body in some))
            stored += 500 * len(some)
    finally:
        all_s = time.perf_counter() - began
        say("ingest", f"{stored / all_s:8.0f} events/s   {stored} in {all_s:.1f} s")


async def history(fleet: Fleet) -> None:
    """Over all events that are stored."""
    name = fleet.names[3]
    for query in (f"node={name}", "code=xid:95", "severity=critical", f"gpu=GPU-{name}-1"):
        took = [(await fleet.ask(f"/api/v1/events?limit=100&{query}"))[0] for _ in range(20)]
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
        uvloop.run(measure(parser.parse_args(), Path(folder)))


if __name__ == "__main__":
    main()
