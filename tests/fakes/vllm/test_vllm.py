"""The fake vLLM is true to what was observed of vLLM 0.32."""

import asyncio
import json
import re
import signal

import aiohttp
import pytest

from tests.fakes.vllm.meters import GOLDEN
from tests.fakes.vllm.running import running

pytestmark = pytest.mark.e2e


async def get(url):
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, (await answer.read()).decode()


async def until(holds):
    async with asyncio.timeout(60):
        while not await holds():
            await asyncio.sleep(0.02)


def streaming(vllm):
    async def holds():
        return "vllm:num_requests_running{" in (text := (await get(f"{vllm.url}/metrics"))[1]) and bool(
            re.search(r"^vllm:num_requests_running\{.*\} 1\.0$", text, re.MULTILINE)
        )

    return holds


async def test_its_metrics_are_those_of_vllm_by_name_and_type():
    async with running() as vllm:
        await vllm.up()
        _, text = await get(f"{vllm.url}/metrics")
    types = dict(re.findall(r"^# TYPE (vllm:\S+) (\w+)$", text, re.MULTILINE))
    golden = {name: row["type"] for name, row in json.loads(GOLDEN.read_text())["metrics"].items()}
    assert golden.items() <= types.items()


async def test_without_a_time_to_drain_sigterm_puts_an_error_into_the_stream_and_closes_the_port():
    async with running(rate=20) as vllm:
        await vllm.up()
        stream = asyncio.ensure_future(vllm.stream(2000))
        await until(streaming(vllm))
        vllm.signal(signal.SIGTERM)
        *_, failed, done = await stream
        assert json.loads(failed)["error"]["code"] == 500
        assert done == "[DONE]"
        with pytest.raises(aiohttp.ClientConnectorError):
            await vllm.ask()
        assert await asyncio.to_thread(vllm.process.wait, 60) == 0


async def test_with_a_time_to_drain_what_is_open_ends_while_new_work_gets_500_and_health_200():
    async with running(shutdown_timeout=30, rate=40) as vllm:
        await vllm.up()
        stream = asyncio.ensure_future(vllm.stream(60))
        await until(streaming(vllm))
        vllm.signal(signal.SIGTERM)

        async def refuses():
            return await vllm.ask() == 500

        await until(refuses)
        assert (await get(f"{vllm.url}/health"))[0] == 200
        chunks = await stream
        assert (len(chunks), chunks[-1]) == (61, "[DONE]")
        assert await asyncio.to_thread(vllm.process.wait, 60) == 0


async def test_a_request_that_outlives_the_time_to_drain_keeps_it_for_ever():
    async with running(shutdown_timeout=0.5, rate=20) as vllm:
        await vllm.up()
        stream = asyncio.ensure_future(vllm.stream(2000))
        await until(streaming(vllm))
        vllm.signal(signal.SIGTERM)

        async def closed():
            try:
                await vllm.ask()
            except aiohttp.ClientConnectorError:
                return True
            return False

        await until(closed)
        vllm.signal(signal.SIGTERM)
        done, _ = await asyncio.wait({stream}, timeout=1.0)
        assert (done, vllm.process.poll()) == (set(), None)
        stream.cancel()


async def test_health_says_200_while_it_is_wedged_and_503_only_once_its_core_is_dead():
    async with running() as vllm:
        await vllm.up()
        await vllm.control(wedged=True)
        assert (await get(f"{vllm.url}/health"))[0] == 200
        await vllm.control(core="kill")

        async def dead():
            return (await get(f"{vllm.url}/health"))[0] == 503

        await until(dead)
        assert await vllm.ask() == 500
