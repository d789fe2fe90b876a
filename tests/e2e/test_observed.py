"""An engine that nobody handed over: seen with its GPUs, model and owner; judged; never signalled. Real processes."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.e2e.fleet import Fleet, fleet
from tests.fakes.vllm.running import Vllm, running

pytestmark = pytest.mark.e2e

FREE = (6, 7)  # GPUs on which `corral up` starts nothing
SEEN_S = 60.0  # the promise: on the page within that time


@contextlib.asynccontextmanager
async def beside(house: Fleet, **flags: object) -> AsyncIterator[Vllm]:
    """A fake vLLM on two virtual GPUs of this house, serving."""
    gpus = ",".join(map(str, FREE))
    more = {"clients": house.plan.run / "clients", "gpus": gpus, "tensor_parallel_size": 2, "rate": 50}
    async with running("smol", **(more | flags)) as vllm:
        yield await vllm.up()


async def observed(house: Fleet, *states: str) -> dict[str, Any] | None:
    """The observed replica, once it is in one of these states."""
    found = [each for each in await house.get("/api/v1/replicas") if each["observed"]]
    return next((each for each in found if each["state"] in states), None)


async def seen(house: Fleet) -> dict[str, Any]:
    return await house.until("the vLLM is observed", lambda: observed(house, "ready"), SEEN_S)


async def gone(house: Fleet) -> bool:
    return not [each for each in await house.get("/api/v1/replicas") if each["observed"]]


async def waiting(house: Fleet, of: str, replica: str) -> list[dict[str, Any]]:
    """The actions on it that wait."""
    told = (await house.get("/api/v1/fleet"))["actions_waiting"]
    return [each for each in told if each["of"] == of and each["subject"].get("replica") == replica]


def orders(house: Fleet, of: str, replica: str) -> Any:
    return lambda: waiting(house, of, replica)


async def test_a_vllm_that_was_there_is_seen_and_its_end_is_its_owners_affair(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False) as house:
        port = 0
        async with beside(house) as vllm:
            replica = await seen(house)
            port = int(vllm.url.rpartition(":")[2])
            gpus = {gpu["index"]: gpu for gpu in await house.gpus()}
            assert replica["gpus"] == [gpus[index]["uuid"] for index in FREE]
            assert (replica["model"], replica["engine"], replica["deployment"]) == ("smol", "vllm", "smol")
            assert replica["owner"].endswith(f"vllm, uid {os.getuid()}")
            assert {gpus[index]["replica"] for index in FREE} == {replica["replica"]}
            told = await asyncio.to_thread(house.corral, "status")
            assert "Corral never signals it" in told.stdout
            vllm.signal(signal.SIGTERM)  # as its owner does
            await house.until("its end is seen", lambda: gone(house))
        async with beside(house, load_s=1, port=port) as vllm:
            again = await seen(house)
        assert (again["replica"], again["pid"]) == (replica["replica"], vllm.pid)


async def test_a_training_is_seen_with_its_owner_and_keeps_its_gpu_until_it_ends(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import time\ntime.sleep(600)\n")
    async with fleet(tmp_path, real_engine=False) as house:
        clients = house.plan.run / "clients"
        clients.mkdir(exist_ok=True)
        with subprocess.Popen([sys.executable, tmp_path / "train.py"], start_new_session=True) as training:
            try:
                (clients / str(training.pid)).write_text(json.dumps({"gpu": FREE[0], "used_bytes": 2**33}))
                work = await seen(house)
                (gpu,) = [gpu for gpu in await house.gpus() if gpu["index"] == FREE[0]]
                assert work["replica"].startswith(f"train.py:{training.pid}@")
                assert (work["serves"], work["gpus"]) == (False, [gpu["uuid"]])
                assert gpu["used_by"] == [f"process train.py, uid {os.getuid()}"]
                assert gpu["state"] == "healthy"
                told = await asyncio.to_thread(house.corral, "status")
                assert f"works on GPU {FREE[0]} by process train.py" in " ".join(told.stdout.split())
            finally:
                training.kill()
        await house.until("its end is seen", lambda: gone(house))


async def test_a_new_agent_finds_it_again_before_anybody_takes_it_for_gone(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False) as house, beside(house):
        replica = await seen(house)
        house.house.kill("agent")

        async def told_by_another() -> bool:
            async with aiohttp.ClientSession() as session, session.get(f"{house.plan.agent}/api/v1/node") as answer:
                node = await answer.json()
            return any(each.get("observed") for each in node["replicas"]) and node["controller"]["up"]

        words: set[str] = set()

        async def answers() -> bool:
            found = [each["state"] for each in await house.get("/api/v1/replicas") if each["observed"]]
            words.update(found or ["gone"])
            with contextlib.suppress(aiohttp.ClientError):
                return await told_by_another()
            return False

        await house.house.ended("agent")
        await house.until("the next agent sees it", answers)
        assert (await seen(house))["pid"] == replica["pid"]
        assert words == {"ready"}


@pytest.mark.long  # a stall is one after two minutes, beside a GPU that answers
async def test_one_that_stalls_is_called_so_and_one_that_goes_on_is_not(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False) as house, beside(house) as vllm:
        asking = asyncio.ensure_future(vllm.stream(100_000))
        await vllm.control(wedged=True)
        await house.until("it is stalled", lambda: observed(house, "stalled"))
        await vllm.control()
        await house.until("it goes on", lambda: observed(house, "ready"))
        assert vllm.process.poll() is None
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking


async def test_its_gpu_falls_and_it_is_held_but_not_touched(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False) as house, beside(house) as vllm:
        replica = await seen(house)
        await house.drill("xid", FREE[0], code=79)
        (drain,) = await house.until("its drain waits", orders(house, "drain", replica["replica"]))
        assert f"its owner ({replica['owner']}) must drain it" in drain["why"]
        lines = await house.explain(replica["gpus"][0])
        assert [line["op"] for line in lines if line["kind"] == "hold" and line["owner"] == "policy"] == ["placed"]
        assert {line["code"] for line in lines if line["kind"] == "incident"} == {"xid:79"}
        assert await vllm.ask() == 200  # nobody has told it anything
        async with aiohttp.ClientSession() as session, session.get(f"{house.plan.agent}/api/v1/recording") as answer:
            told = [json.loads(line) for line in (await answer.text()).splitlines()]
        assert any(line.get("observed") and line.get("replica") == replica["replica"] for line in told)
        vllm.process.terminate()  # its owner does what the action asks for
        await house.until("its end is seen", lambda: gone(house))
        await house.until("nothing waits for it", lambda: _none(house, replica["replica"]))


async def _none(house: Fleet, replica: str) -> bool:
    return not await waiting(house, "drain", replica)
