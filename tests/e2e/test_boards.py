"""Every panel of every board, asked of a real Prometheus that scrapes a real fleet with a fault in it."""

import asyncio
import contextlib
import json
import re
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from tests.e2e.fleet import ROOT, Fleet, fleet
from tests.e2e.load import Load
from tests.ports import free_ports
from tests.programs import need

pytestmark = pytest.mark.e2e

BOARDS = sorted((ROOT / "dashboards" / "json").glob("*.json"))
TIMES = {"$__rate_interval": "20s", "$__range_s": "60", "$__range": "1m", "$__interval": "5s"}

# What is rightly empty here: nobody has judged a hold or adopted a changed rule, there is one controller, no manager,
# no webhook; the GPUs are virtual and count no memory errors; and what has "> 0" in it shows what went wrong only.
ABSENT = re.compile(
    r"corral_rule_|corral_manager_|corral_webhook_|corral_lease_age|corral_follower_lag|corral_conditions_open\{"
    r'|> 0|\{state="waiting"\}|\{result="failed"\}|corral_oldest_hold|corral_gateway_retries|state="done"'
)


@contextlib.asynccontextmanager
async def prometheus(running: Fleet, folder: Path) -> AsyncIterator[str]:
    """The configuration that ships, with this fleet's ports and a scrape each second; the address to ask."""
    shipped = (ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text()
    port = running.plan.controller.rpartition(":")[2]
    config = yaml.safe_load(shipped.replace(":7400", f":{port}"))
    config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "5s"}
    config.pop("alerting")
    config["rule_files"] = [str(ROOT / "alerts" / "rules" / "*.yml")]
    for job in config["scrape_configs"]:
        for discovery in job.get("http_sd_configs", ()):
            discovery["refresh_interval"] = "2s"
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    (mine,) = free_ports(1)
    command = [need("prometheus", "apt-get install prometheus"), f"--config.file={folder}/prometheus.yml",
               f"--storage.tsdb.path={folder}/tsdb", f"--web.listen-address=127.0.0.1:{mine}"]  # fmt: skip
    with (folder / "prometheus.log").open("wb") as log, subprocess.Popen(command, stderr=log, stdout=log) as process:
        try:
            yield f"http://127.0.0.1:{mine}"
        finally:
            process.terminate()


async def ask(session: aiohttp.ClientSession, address: str, expression: str) -> list[dict[str, Any]]:
    async with session.get(f"{address}/api/v1/query", params={"query": expression}) as response:
        answer = await response.json()
    assert answer["status"] == "success", (expression, answer)
    return answer["data"]["result"]


async def test_no_panel_is_empty_that_should_not_be(tmp_path: Path) -> None:
    async with fleet(tmp_path / "fleet", real_engine=True) as running, prometheus(running, tmp_path) as address:
        victim = await running.gpu_serving("chat")
        session = running.session

        async def scraped() -> bool:
            with contextlib.suppress(aiohttp.ClientError):
                found = await ask(session, address, "vllm:generation_tokens_total")
                return len({series["metric"]["replica"] for series in found}) >= 2
            return False

        async with Load(running.plan.gateway, "chat", streams=2) as load:
            await running.until("Prometheus scrapes the engines", scraped)
            await running.drill("xid", victim["index"], code=79)

            async def moved() -> bool:
                return bool(await ask(session, address, 'increase(corral_action_moves_total{state="done"}[30s]) > 0'))

            await running.until("an action is over", moved)
            await load.served(8)
            serving = await running.gpu_serving("chat")
            node = next(each["node"] for each in (await running.get("/api/v1/fleet"))["nodes"])
            values = {"node": node, "gpu": serving["uuid"], "deployment": "chat"}
            await asyncio.sleep(2)  # two more scrapes of what has just been served
            empty, unknown = [], []
            for board in BOARDS:
                for title, target in targets(json.loads(board.read_text())):
                    expression = filled(target["expr"], values)
                    found = await ask(session, address, expression)
                    if not found and not ABSENT.search(target["expr"]):
                        empty.append((board.name, title, expression))
                    labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
                    if found and not any(labels <= series["metric"].keys() | {"by"} for series in found):
                        unknown.append((board.name, title, labels, found[0]["metric"]))
        assert empty == []
        assert unknown == []


def targets(board: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(panel["title"], target) for panel in board["panels"] for target in panel.get("targets", ())]


def filled(expression: str, values: dict[str, str]) -> str:
    """The expression with Grafana's variables as a person would have chosen them."""
    for name, value in TIMES.items():
        expression = expression.replace(name, value)
    return re.sub(r"\$(\w+)", lambda name: values[name[1]], expression)
