"""Repairs for real: the virtual node resets and boots by order, is validated, and is given back. Real processes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.fleet import Fleet, fleet
from tests.e2e.load import Load
from tests.e2e.test_drill import only, repaired_but_for_the_person

pytestmark = pytest.mark.e2e


async def in_phase(running: Fleet, uuid: str, phase: str) -> dict[str, Any]:
    async def there() -> dict[str, Any] | None:
        gpu = next(gpu for gpu in await running.gpus() if gpu["uuid"] == uuid)
        return gpu if gpu["phase"] == phase else None

    return await running.until(f"GPU in phase {phase}", there)


def states(lines: list[dict[str, Any]], of: str) -> list[str]:
    return [line["state"] for line in only(lines, kind="action", of=of)]


async def services(running: Fleet) -> set[str]:
    """The virtual node's services that run, as its own file tells."""
    import json

    path = running.plan.run / "virtual.services.json"
    return set(json.loads(await asyncio.to_thread(path.read_text))["active"])


async def test_an_uncorrectable_error_is_repaired_without_a_person_and_without_a_failed_request(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False) as running:
        victim = await running.gpu_serving("chat")
        async with Load(running.plan.gateway, "chat", streams=4) as load:
            await load.served(4)
            await running.drill("xid", victim["index"], code=48)
            await in_phase(running, victim["uuid"], "probation")
            await load.served(4)
        assert load.failures == []
        lines = await running.explain(victim["uuid"])
        assert states(lines, "reset_gpu") == ["ordered", "running", "done"]
        assert states(lines, "validate")[-1] == "done"
        assert "presence" in only(lines, kind="action", of="validate", state="done")[0]["why"]
        gpu = next(gpu for gpu in await running.gpus() if gpu["uuid"] == victim["uuid"])
        assert gpu["conditions"] == []
        assert gpu["holds"]
        assert await services(running) == {
            "dcgm-exporter.service",
            "nvidia-dcgm.service",
            "nvidia-persistenced.service",
        }
        evidence = tmp_path / "agent" / "evidence" / only(lines, kind="action", of="reset_gpu")[0]["id"]
        assert b"Xid" in (evidence / "kernel.log").read_bytes()


async def test_an_approved_reboot_boots_the_node_and_ends_in_probation_and_release(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False) as running:
        victim = await running.gpu_serving("chat")
        before = (await running.get("/api/v1/nodes"))[0]["boot_id"]
        await running.drill("xid", victim["index"], code=79)
        lines = await repaired_but_for_the_person(running, victim["uuid"])
        reboot = only(lines, kind="action", of="reboot_node", state="waiting")[-1]
        old = {each["replica"]: each["pid"] for each in await running.get("/api/v1/replicas")}

        approved = await asyncio.to_thread(
            running.corral, "approve", reboot["id"], "--force", "--reason", "nobody is looking"
        )
        assert approved.returncode == 0, approved.stderr
        await in_phase(running, victim["uuid"], "probation")

        assert (await running.get("/api/v1/nodes"))[0]["boot_id"] != before
        lines = await running.explain(victim["uuid"])
        assert states(lines, "reboot_node")[-1] == "done"
        assert states(lines, "validate")[-1] == "done"
        passed = only(lines, kind="action", of="validate", state="done")[-1]["why"].partition("; not known")[0]
        assert {"diag_open", "canary"} <= set(passed.removeprefix("passed: ").split(", "))  # work was run on it
        assert only(lines, kind="condition", code="xid:79")[-1]["state"] == "cleared"

        await running.until("all replicas serve again", running.all_ready)
        now = {each["replica"]: each for each in await running.get("/api/v1/replicas")}
        assert not {each["pid"] for each in now.values()} & set(old.values())
        assert not [each for each in now.values() if victim["uuid"] in each["gpus"]]  # its hold came up before them

        released = await asyncio.to_thread(running.corral, "release", victim["uuid"], "--reason", "seen enough")
        assert released.returncode == 0, released.stderr
        gpu = await in_phase(running, victim["uuid"], "in_service")
        assert gpu["holds"] == []
        async with Load(running.plan.gateway, "chat", streams=2) as load:
            await load.served(4)
        assert load.failures == []


async def test_an_agent_that_is_killed_in_the_middle_of_a_reset_leaves_nothing_stopped(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False) as running:
        victim = await running.gpu_serving("chat")
        journal = tmp_path / "agent" / "repairs.json"
        await running.drill("xid", victim["index"], code=48)

        async def begun() -> bool:
            return await asyncio.to_thread(journal.exists)

        await running.until("a reset begun", begun)
        running.house.kill("agent")
        await in_phase(running, victim["uuid"], "probation")
        lines = await running.explain(victim["uuid"])
        assert states(lines, "reset_gpu")[-1] == "done"
        assert states(lines, "validate")[-1] == "done"
        assert await services(running) == {
            "dcgm-exporter.service",
            "nvidia-dcgm.service",
            "nvidia-persistenced.service",
        }
