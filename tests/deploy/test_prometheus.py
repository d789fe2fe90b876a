"""The shipped Prometheus and Alertmanager configuration, first read by their own checkers, then run for real."""

import asyncio
import re
import shutil
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import yaml
from aiohttp import web

from tests.programs import need
from vocab.metrics import AGENT, CONTROLLER
from wire.exposition import Exposition
from wire.server import make_app

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "deploy" / "prometheus"
RULES = ROOT / "alerts" / "rules"
PROMETHEUS = "apt-get install prometheus"
PATIENCE_S = 60.0  # a quiet machine needs about 7 s; one that is busy with other tests a multiple


@pytest.fixture
def installed(tmp_path):
    """The files as they lie in /etc/prometheus: the rules beside the configuration."""
    shutil.copytree(RULES, tmp_path / "rules")
    shutil.copy(CONFIG / "prometheus.yml", tmp_path)
    return tmp_path


def run(program: str, install: str, *arguments: str) -> str:
    done = subprocess.run([need(program, install), *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_accepts_the_configuration_with_its_rules(installed):
    said = run("promtool", PROMETHEUS, "check", "config", str(installed / "prometheus.yml"))
    assert f"{len(list(RULES.glob('*.yml')))} rule files found" in said


def test_every_process_that_the_controller_lists_is_scraped():
    jobs = yaml.safe_load((CONFIG / "prometheus.yml").read_text())["scrape_configs"]
    found = {job["job_name"]: job["http_sd_configs"][0]["url"] for job in jobs if "http_sd_configs" in job}
    base = "http://127.0.0.1:7400/sd/"
    assert found == {
        "corral-agent": f"{base}agents",
        "corral-engine": f"{base}engines",
        "corral-gateway": f"{base}gateways",
    }
    assert all(job["honor_labels"] for job in jobs if job["job_name"] in found), "a series' own word stands"


async def test_a_real_prometheus_finds_the_targets_and_fires_a_rule(installed):
    async with small_fleet() as fleet, prometheus(fleet.port, installed) as api:
        await until(lambda: api("targets", state="active"), fleet.all_scraped)
        power = await until(lambda: api("query", query="corral_gpu_power_watts"), lambda data: data.get("result"))
        assert power["result"][0]["metric"]["node"] == "gpu-node-1", "the node comes from discovery"
        assert power["result"][0]["metric"]["gpu"] == "GPU-1"

        await until(lambda: api("alerts"), lambda data: "alerts" in data and told(data) == [])
        fleet.agent.gauge("corral_gpu_held").labels(gpu="GPU-1").set(1)
        alerts = await until(lambda: api("alerts"), lambda data: fires(data, "CorralGpuFault"))
        assert told(alerts)[0]["labels"]["gpu"] == "GPU-1"
        assert told(alerts)[0]["annotations"]["runbook_url"].endswith("/CorralGpuFault.md")


def fires(data: dict, name: str) -> bool:
    return [each["labels"]["alertname"] for each in told(data) if each["state"] == "firing"] == [name]


def told(data: dict) -> list[dict]:
    """The alerts but for the one that is always there."""
    return [each for each in data.get("alerts", ()) if each["labels"]["alertname"] != "CorralWatchdog"]


class Fleet:
    """A controller and an agent with one broken GPU: the real exposition of both, behind one port."""

    def __init__(self) -> None:
        self.port = 0
        self.controller = Exposition(CONTROLLER)
        self.agent = Exposition(AGENT)
        self.agent.gauge("corral_gpu_power_watts").labels(gpu="GPU-1").set(71)
        self.agent.gauge("corral_gpu_up").labels(gpu="GPU-1").set(1)
        for mine, name in ((self.agent, "agent_uplink_up"), (self.controller, "leader"), (self.controller, "store_up")):
            mine.gauge(f"corral_{name}").set(1)

    def app(self) -> web.Application:
        app = make_app(ready=lambda: (True, ""), metrics=self.controller)
        agent = make_app(ready=lambda: (True, ""), metrics=self.agent)
        app.add_subapp("/agent", agent)
        app.router.add_get("/sd/{kind}", self._discovery)
        return app

    async def _discovery(self, request: web.Request) -> web.Response:
        if request.match_info["kind"] != "agents":
            return web.json_response([])
        labels = {"node": "gpu-node-1", "__metrics_path__": "/agent/metrics"}
        return web.json_response([{"targets": [f"127.0.0.1:{self.port}"], "labels": labels}])

    @staticmethod
    def all_scraped(data: dict) -> bool:
        health = {target["labels"]["job"]: target["health"] for target in data.get("activeTargets", ())}
        return health == {"corral-controller": "up", "corral-agent": "up"}


@asynccontextmanager
async def small_fleet():
    fleet = Fleet()
    runner = web.AppRunner(fleet.app(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fleet.port = runner.addresses[0][1]
    yield fleet
    await runner.cleanup()


@asynccontextmanager
async def prometheus(controller_port: int, folder: Path):
    """A real Prometheus on the shipped files, in a hurry: intervals of a second, alerts without a wait."""
    text = (folder / "prometheus.yml").read_text().replace("127.0.0.1:7400", f"127.0.0.1:{controller_port}")
    text = re.sub(r"(scrape_interval|scrape_timeout|evaluation_interval): \d+s", r"\1: 1s", text)
    text = re.sub(r"(refresh_interval): \d+s", r"\1: 1s", text)
    (folder / "prometheus.yml").write_text(text)
    for rules in (folder / "rules").iterdir():
        rules.write_text(re.sub(r"\bfor: \w+", "for: 0s", rules.read_text()))
    process = await asyncio.create_subprocess_exec(
        need("prometheus", PROMETHEUS),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        "--web.listen-address=127.0.0.1:0",
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE_S), aiohttp.ClientSession() as session:
            base = await _address(process)
            reader = asyncio.create_task(process.stderr.read())  # or its pipe fills up

            async def api(path: str, **query: str) -> dict:
                async with session.get(f"{base}/api/v1/{path}", params=query) as response:
                    return (await response.json())["data"] if response.status == 200 else {}  # 503: it still starts

            yield api
            reader.cancel()
    finally:
        process.kill()
        await process.wait()


async def _address(process: asyncio.subprocess.Process) -> str:
    """Prometheus says in its log which port it got."""
    said = []
    while line := (await process.stderr.readline()).decode():
        said.append(line)
        if found := re.search(r'msg="Listening on" address=(127\.0\.0\.1:\d+)', line):
            return f"http://{found[1]}"
    raise AssertionError("".join(said))


async def until(ask, good) -> dict:
    """Ask until the answer is good; the caller bounds the time."""
    while True:
        answer = await ask()
        if good(answer):
            return answer
        await asyncio.sleep(0.1)
