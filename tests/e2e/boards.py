"""A Prometheus that scrapes a real fleet, and what the boards may rightly show empty there."""

import contextlib
import re
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tests.e2e.fleet import ROOT, Fleet
from tests.ports import free_ports
from tests.programs import need

BOARDS = sorted((ROOT / "dashboards" / "json").glob("*.json"))
FASTER = {"1m15s": "10s", "[1m]": "[20s]", "[2m]": "[20s]", "interval: 1m": "interval: 9s", ": 15s": ": 1s"}

# What is rightly empty here: nobody has judged a hold or adopted a changed rule, there is one controller, no manager,
# no webhook, no card that fails more often than others, no replica that drafts; the board's peak is not known of a CPU;
# what has "> 0" in it shows what went wrong only, as does what is counted of Xids by the minute.
ABSENT = re.compile(
    r"corral_rule_|corral_manager_|corral_webhook_|corral_lease_age|corral_follower_lag|corral_conditions_open\{"
    r'|> 0\)?$|> 0\) \*|\{state="waiting"\}|\{result="failed"\}|corral_oldest_hold|corral_gateway_retries|state="done"'
    r"|corral_lemons|corral_condition_opened|corral:xid|spec_decode|corral_engine_mfu|corral_engine_mbu"
)


@contextlib.asynccontextmanager
async def prometheus(running: Fleet, folder: Path) -> AsyncIterator[str]:
    """The configuration that ships, with this fleet's ports, a scrape each second and rules to match; the address."""
    shipped = (ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text()
    port = running.plan.controller.rpartition(":")[2]
    config = yaml.safe_load(shipped.replace(":7400", f":{port}"))
    config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "5s"}
    config.pop("alerting")
    config["rule_files"] = [str(ROOT / "alerts" / "rules" / "*.yml"), str(folder / "boards.yml")]
    (folder / "boards.yml").write_text(hurried((ROOT / "dashboards" / "rules" / "boards.yml").read_text()))
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


def hurried(rules: str) -> str:
    """The rules of the boards for a scrape each second."""
    for slow, fast in FASTER.items():
        rules = rules.replace(slow, fast)
    return rules


async def ask(session: aiohttp.ClientSession, address: str, expression: str) -> list[dict[str, Any]]:
    """The series that Prometheus answers with."""
    async with session.get(f"{address}/api/v1/query", params={"query": expression}) as response:
        answer = await response.json()
    assert answer["status"] == "success", (expression, answer)
    return list(answer["data"]["result"])


def targets(board: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Each query of a board with its panel's title."""
    return [(panel["title"], target) for panel in board["panels"] for target in panel.get("targets", ())]
