"""Ten faults in fifteen minutes, under the rules that ship with all durations divided by 20: what fired, and what not.

    python -m tests.bench.fifteen_minutes [--minutes 15]

A whole house of real processes on a virtual node of eight GPUs (a replica program that has no model), a real Prometheus
that scrapes it each second, and a real Alertmanager with alerts/alertmanager.yml, whose receivers are this program.
Expected is what each fault must raise; what it may raise besides, as its consequence, is listed with it. Whatever else
fires is a false alarm. Exit code 1 if an alert is missing or false.
"""

import argparse
import asyncio
import contextlib
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import yaml
from aiohttp import web

from alerts.house import ALERTS, GROUPS
from alerts.rules_file import rules_file
from tests.e2e.fleet import ROOT, Fleet, fleet
from tests.ports import free_ports
from tests.programs import need

FASTER = 20
STOPPED_S = 25.0  # how long a process stands still: longer than the minutes of the rules, divided
SEVERAL = {"CorralReplacing", "CorralReplicasShort", "CorralAtFloor", "CorralDeploymentDown", "CorralFloorInDanger"}


class Fault(msgspec.Struct, frozen=True):
    """What is done, what must fire for it, and what may."""

    name: str
    do: Callable[[Fleet], Awaitable[None]]
    must: frozenset[str]
    may: frozenset[str] = frozenset()


def drill(kind: str, gpu: int, **more: Any) -> Callable[[Fleet], Awaitable[None]]:
    async def act(running: Fleet) -> None:
        await running.drill(kind, gpu, **more)

    return act


def stopped(name: str) -> Callable[[Fleet], Awaitable[None]]:
    async def act(running: Fleet) -> None:
        running.house.kill(name, signal.SIGSTOP)
        await asyncio.sleep(STOPPED_S)
        running.house.kill(name, signal.SIGCONT)

    return act


async def paused(running: Fleet) -> None:
    """For longer than an hour of the rules."""
    await running.post("/api/v1/pause", {"reason": "a rehearsal"})
    await asyncio.sleep(3600 / FASTER + 45)
    await running.post("/api/v1/resume", {"reason": "it is over"})


async def serving_gpu_falls(running: Fleet) -> None:
    await running.drill("xid", (await running.gpu_serving("chat"))["index"], code=79)


def _(*names: str) -> frozenset[str]:
    return frozenset(f"Corral{name}" for name in names)


FAULTS = (
    Fault("Xid 79 under a replica", serving_gpu_falls, _("GpuFault"), _("GpuMissing", "GpuXid")),
    Fault("uncorrectable memory errors", drill("ecc", 7), _("EccUncorrectable", "GpuFault")),
    Fault("a row remap that fails", drill("remap", 6, failed=True), _("RemapFailed", "GpuFault"), _("RemapPending")),
    Fault("heat", drill("thermal", 5), _("HardwareSlowdown"), _("GpuHot", "GpuThrottled", "ThermalSlowdown")),
    Fault("half the PCIe lanes", drill("pcie", 4), _("Pcie")),
    Fault("Xid 74, a link", drill("xid", 5, code=74), _("GpuXid"), _("Fabric", "NvlinkDown")),
    Fault("the gateway stands still", stopped("gateway"), _("TargetDown")),
    Fault("the controller stands still", stopped("controller"), _("TargetDown"), _("UplinkDown", "NodeBlind")),
    Fault("the agent stands still", stopped("agent"), _("NodeBlind", "NodesBlind"), _("ReadingsStale", "ProbeUnknown")),
    Fault("automation is paused", paused, _("Paused")),
)
AFTERWARDS = _("Quarantined", "PersonNeeded", "RepairWaits", "RepairStuck", "CapacityLost", "RecoveryAction",
               "TooMuchSick", "BudgetExhausted", "Watchdog")  # fmt: skip


@contextlib.asynccontextmanager
async def receivers(heard: list[dict[str, Any]]) -> AsyncIterator[int]:
    """Where Alertmanager sends to; the port."""

    async def take(request: web.Request) -> web.Response:
        heard.append({"receiver": request.match_info["receiver"], **await request.json()})
        return web.Response()

    app = web.Application()
    app.router.add_post("/{receiver}", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield int(runner.addresses[0][1])
    await runner.cleanup()


@contextlib.asynccontextmanager
async def running_program(folder: Path, name: str, *arguments: str) -> AsyncIterator[None]:
    """Prometheus or Alertmanager, until the end."""
    command = [need(name, f"apt-get install {name}"), *arguments]
    with (folder / f"{name}.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            yield
        finally:
            process.terminate()


def write_configuration(folder: Path, controller_port: str, alertmanager: int, receiver: int) -> None:
    """What ships, in a hurry, with this house's addresses."""
    shipped = (ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text()
    config = yaml.safe_load(shipped.replace(":7400", f":{controller_port}").replace(":9093", f":{alertmanager}"))
    config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    for job in config["scrape_configs"]:
        for discovery in job.get("http_sd_configs", ()):
            discovery["refresh_interval"] = "2s"
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    (folder / "rules").mkdir()
    for group in GROUPS:
        (folder / "rules" / f"{group.subject}.yml").write_text(rules_file(group, FASTER))
    routes = yaml.safe_load((ROOT / "alerts" / "alertmanager.yml").read_text())
    for route in (routes["route"], *routes["route"]["routes"]):
        route |= {"group_wait": "2s", "group_interval": "15s"}
    for each in routes["receivers"]:
        each["webhook_configs"] = [{"url": f"http://127.0.0.1:{receiver}/{each['name']}"}]
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(routes))


async def fired(prometheus: str, of_late_s: float) -> dict[str, float]:
    """Every alert that fired, and for how many seconds, the longest of its series."""
    query = f'max by (alertname) (count_over_time(ALERTS{{alertstate="firing"}}[{max(1, int(of_late_s))}s]))'
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{prometheus}/api/v1/query", params={"query": query}) as response,
    ):
        answer = await response.json()
    return {each["metric"]["alertname"]: float(each["value"][1]) for each in answer["data"]["result"]}


async def rehearse(folder: Path, minutes: float) -> int:
    """Play all faults; print what came of it; 1 if something is missing or false."""
    heard: list[dict[str, Any]] = []
    prometheus, alertmanager = free_ports(2)
    async with fleet(folder / "fleet", real_engine=False) as running, receivers(heard) as receiver:
        write_configuration(folder, running.plan.controller.rpartition(":")[2], alertmanager, receiver)
        async with (
            running_program(folder, "prometheus-alertmanager", f"--config.file={folder}/alertmanager.yml",
                            f"--storage.path={folder}/am", f"--web.listen-address=127.0.0.1:{alertmanager}",
                            "--cluster.listen-address="),
            running_program(folder, "prometheus", f"--config.file={folder}/prometheus.yml",
                            f"--storage.tsdb.path={folder}/tsdb", f"--web.listen-address=127.0.0.1:{prometheus}"),
        ):  # fmt: skip
            address = f"http://127.0.0.1:{prometheus}"
            await asyncio.sleep(30)  # the first scrapes, and what the start of Prometheus itself raises has passed
            began, clock = asyncio.get_running_loop().time(), asyncio.get_running_loop().time
            pause_s = (minutes * 60 - 20 - 3 * STOPPED_S - 3600 / FASTER) / len(FAULTS)
            seen: set[str] = set()
            for fault in FAULTS:
                await fault.do(running)
                await asyncio.sleep(max(5.0, pause_s))
                now = set(await fired(address, clock() - began))
                print(f"{fault.name:32} new: {' '.join(sorted(now - seen))}", flush=True)
                seen = now
            return report(await fired(address, clock() - began), heard)


def report(found: dict[str, float], heard: list[dict[str, Any]]) -> int:
    """What fired against what was to; how often each receiver was called."""
    must = frozenset().union(*(fault.must for fault in FAULTS)) | {"CorralWatchdog"}
    may = must | SEVERAL | AFTERWARDS | frozenset().union(*(fault.may for fault in FAULTS))
    missing, false = sorted(must - found.keys()), sorted(found.keys() - may)
    told = defaultdict[str, list[str]](list)
    for notice in heard:
        if notice["status"] == "firing":
            told[notice["receiver"]].append(notice["groupLabels"].get("deployment", "") or notice["groupKey"])
    for name in sorted(found):
        print(f"{name:28} {ALERTS[name].severity:7} {found[name]:5.0f} s")
    for receiver, groups in told.items():
        print(f"receiver {receiver}: {len(groups)} notices")
    texts = [text for each in heard for one in each["alerts"] for text in one["annotations"].values()]
    print("templates that failed:", [text for text in texts if "<error" in text])
    print("missing:", *missing)
    print("false:", *false)
    return 1 if missing or false else 0


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=15.0)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(asyncio.run(rehearse(Path(folder), minutes)))


if __name__ == "__main__":
    main()
