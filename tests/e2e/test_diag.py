"""Active checks for real: the measuring program with PyTorch, asked for by `corral diag`, judged and acted on."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.e2e.fleet import fleet
from tests.e2e.test_drill import only
from tests.e2e.test_repair import in_phase, states

pytestmark = pytest.mark.e2e


async def test_a_gpu_that_computes_wrong_is_found_by_a_check_and_taken_out_of_service(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False) as running:
        good, bad = (await running.gpus())[-2:]
        await running.drill("corrupt", bad["index"])

        healthy = await asyncio.to_thread(running.corral, "diag", good["uuid"], "--json")
        assert healthy.returncode == 0, healthy.stderr
        assert {"diag_open", "canary"} <= {each["check"] for each in json.loads(healthy.stdout)}
        assert {each["result"] for each in json.loads(healthy.stdout)} == {"pass"}

        broken = await asyncio.to_thread(running.corral, "diag", bad["uuid"])
        assert broken.returncode == 1, broken.stderr
        assert "silent_corruption" in broken.stdout

        async def held() -> bool:
            gpu = next(gpu for gpu in await running.gpus() if gpu["uuid"] == bad["uuid"])
            return bool(gpu["holds"]) and "silent_corruption" in {each["code"] for each in gpu["conditions"]}

        await running.until("the GPU is held", held)


async def test_what_would_harm_is_refused(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False) as running:
        serving = await running.gpu_serving("chat")
        refused = await asyncio.to_thread(running.corral, "diag", serving["uuid"], "--grade", "medium")
        assert refused.returncode == 4
        assert "is in service" in refused.stderr
        unasked = await asyncio.to_thread(running.corral, "diag", serving["uuid"], "--grade", "burn")
        assert unasked.returncode == 2


async def test_a_gpu_that_computes_wrong_after_its_repair_is_not_given_back(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False) as running:
        victim = await running.gpu_serving("chat")
        await running.drill("corrupt", victim["index"])
        await running.drill("xid", victim["index"], code=48)
        await in_phase(running, victim["uuid"], "quarantined")
        lines = await running.explain(victim["uuid"])
        assert states(lines, "reset_gpu")[-1] == "done"
        assert "done" not in states(lines, "validate")
        assert only(lines, kind="condition", code="silent_corruption")[-1]["state"] == "open"
