"""A deployment whose engine is vLLM: placed, started, served by the gateway, moved off a bad GPU. Real processes."""

import os
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from corral.up.house import House
from corral.up.plan import Plan
from tests.e2e.fleet import ROOT, Fleet, free_base_port
from wire.client import Client

pytestmark = pytest.mark.e2e

PROGRAM = f"""#!{sys.executable}
import runpy
runpy.run_path({str(ROOT / "tests" / "fakes" / "vllm")!r}, run_name="__main__")
"""


class VllmPlan(Plan, frozen=True, kw_only=True):
    """``corral up`` with one deployment, of another engine."""

    def configs(self) -> dict[str, dict[str, object]]:
        """As usual, but for the deployments."""
        configs = super().configs()
        llama = {
            "name": "llama", "replicas": 1, "gpus_per_replica": 2, "model": "/models/llama", "engine": "vllm",
            "options": {"rate": 100}, "drain_s": 20.0, "kill_s": 2.0,
        }  # fmt: skip
        configs["controller"]["deployments"] = [llama]
        return configs


async def ask(gateway: str) -> int:
    body = {"model": "llama", "max_tokens": 4, "prompt": "x"}
    async with aiohttp.ClientSession() as session, session.post(f"{gateway}/v1/completions", json=body) as answer:
        await answer.read()
        return answer.status


async def test_a_vllm_is_placed_served_and_moved_off_a_lost_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "vllm"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    plan = VllmPlan(state=tmp_path / "state", base_port=free_base_port())
    async with House(plan, restart=True).opened() as house, Client(plan.controller) as client:
        fleet = Fleet(house, client)
        await fleet.until("it is ready", fleet.all_ready)

        async def served() -> bool:
            return await ask(plan.gateway) == 200

        await fleet.until("the gateway serves it", served)
        (before,) = await fleet.replicas("llama")
        assert (before["engine"], before["observed"], len(before["gpus"])) == ("vllm", False, 2)
        victim = next(gpu for gpu in await fleet.gpus() if gpu["uuid"] == before["gpus"][0])
        await fleet.drill("xid", victim["index"], code=79)

        async def moved() -> list[dict[str, Any]]:
            found = await fleet.replicas("llama")
            return [each for each in found if each["state"] == "ready" and victim["uuid"] not in each["gpus"]]

        await fleet.until("another one serves elsewhere", moved)
        await fleet.until("the gateway serves that", served)

        async def alone() -> bool:
            return len(await fleet.replicas("llama")) == 1

        await fleet.until("the first one has gone", alone)
        assert await ask(plan.gateway) == 200
