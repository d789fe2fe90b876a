"""Every panel of every board, asked of a real Prometheus that scrapes a real fleet with a fault in it."""

import asyncio
import contextlib
import json
import re
from pathlib import Path

import aiohttp
import pytest

from tests.e2e.boards import ABSENT, BOARDS, ask, prometheus, targets
from tests.e2e.fleet import fleet
from tests.e2e.load import Load

pytestmark = pytest.mark.e2e

TIMES = {"$__rate_interval": "20s", "$__range_s": "300", "$__range": "5m", "$__interval": "5m"}


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


def filled(expression: str, values: dict[str, str]) -> str:
    """The expression with Grafana's variables as a person would have chosen them."""
    for name, value in TIMES.items():
        expression = expression.replace(name, value)
    return re.sub(r"\$(\w+)", lambda name: values[name[1]], expression)
