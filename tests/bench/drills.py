"""How long a fault takes from the kernel record to the fence, to the replica's refusal, and to the hold on disk.

    python -m tests.bench.drills [--drills 20]

A whole fleet of real processes with a replica program that has no model ("without engines"). Each drill writes an
Xid 79 for the next GPU of a virtual node that a replica runs on. Five moments are taken on one machine's clock:

    written   the kernel record's own stamp
    read      the agent has read the record (the time of the event that it became)
    fenced    the fence's own time in the agent: decided, and its replicas are being told
    refuses   the replica's /ready says no, asked every few milliseconds
    stored    the policy hold's line arrives on the controller's stream, which sends only what is committed
"""

import argparse
import asyncio
import contextlib
import statistics
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from agent.virtual.state import VirtualState
from tests.e2e.fleet import Fleet, fleet
from wire.sse import read_stream

STAGES = ("read", "fenced", "refuses", "stored")
ASK_S = 0.004
LIMIT_S = 30.0
A_FLEET = 2
Times = dict[str, float]


def written_at(running: Fleet, code: int) -> float:
    """The stamp of the last record that names this Xid, as seconds since the epoch."""
    (path,) = Path(running.plan.state).rglob("virtual.state")
    state = VirtualState.open(path)
    lines = [state.read_log(number) or b"" for number in range(int(state.block.log_next))]
    stamps = [int(line.split(b",")[2]) for line in lines if f": {code}, ".encode() in line]
    boot = float(state.block.boot_monotonic_s)
    state.close()
    return boot + stamps[-1] / 1e6 + time.time() - time.monotonic()


async def refusal(url: str) -> float:
    """When the replica at this address stops being ready."""
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"{url}/ready") as answer:
                if answer.status != 200:
                    return time.time()
            await asyncio.sleep(ASK_S)


async def heard(running: Fleet, uuid: str, opened: asyncio.Event) -> Times:
    """When the event was read and the policy's hold stored, from the controller's stream."""
    found: Times = {}
    async with running.session.get(f"{running.plan.controller}/api/v1/watch") as response:
        opened.set()
        async for _, _, raw in read_stream(response):
            line: dict[str, Any] = msgspec.json.decode(raw)
            if line.get("subject") != {"gpu": uuid}:
                continue
            if line["kind"] == "event" and line["event"]["code"] == "xid:79":
                found.setdefault("read", datetime.fromisoformat(line["event"]["at"]).timestamp())
            elif line["kind"] == "hold" and line.get("op") == "placed" and line["owner"] == "policy":
                found["stored"] = time.time()
            if found.keys() == {"read", "stored"}:
                return found
    raise ConnectionError("the controller's stream has ended")


async def fenced_at(running: Fleet, uuid: str) -> float:
    """When the agent fenced the GPU, as its own recording has it."""
    async with running.session.get(f"{running.plan.agent}/api/v1/recording") as answer:
        lines = (msgspec.json.decode(line) for line in (await answer.read()).splitlines())
        return float(next(line["at"] for line in lines if line.get("of") == "fence" and line.get("gpu") == uuid))


async def one(running: Fleet, gpu: dict[str, Any], url: str) -> Times:
    """Seconds from the record to each stage, of one drill."""
    opened = asyncio.Event()
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as tasks:
        stream = tasks.create_task(heard(running, gpu["uuid"], opened))
        door = tasks.create_task(refusal(url))
        await opened.wait()
        await running.drill("xid", gpu["index"], code=79)
    written = written_at(running, 79)
    moments = {**stream.result(), "fenced": await fenced_at(running, gpu["uuid"]), "refuses": door.result()}
    return {stage: at - written for stage, at in moments.items()}


async def measure(drills: int) -> list[Times]:
    """All drills, some a fleet: the controller and the agent bound how many GPUs of a node they take at once."""
    times: list[Times] = []
    while len(times) < drills:
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(TimeoutError):
            async with fleet(Path(folder), real_engine=False) as running:
                gpus = {gpu["uuid"]: gpu for gpu in await running.gpus()}
                ready = [each for each in await running.get("/api/v1/replicas") if each["state"] == "ready"]
                some = ready[: min(A_FLEET, drills - len(times))]
                times += [await one(running, gpus[replica["gpus"][0]], replica["url"]) for replica in some]
        print(f"{len(times)} of {drills} drills", flush=True)
    return times


def show(times: list[Times]) -> None:
    """Print p50, p99 and the worst of each distance."""
    print(f"\n| {len(times)} drills, ms after the kernel record | p50 | p99 | worst |\n|---|---|---|---|")
    for stage in STAGES:
        values = sorted(1000 * row[stage] for row in times)
        p99 = statistics.quantiles(values, n=100, method="inclusive")[98]
        print(f"| {stage} | {statistics.median(values):.1f} | {p99:.1f} | {values[-1]:.1f} |")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drills", type=int, default=20)
    show(asyncio.run(measure(parser.parse_args().drills)))


if __name__ == "__main__":
    main()
