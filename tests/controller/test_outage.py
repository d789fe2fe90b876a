"""PostgreSQL that is killed, stands still or is full: nodes keep what is not acknowledged, the controller says why, and
goes on by itself."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.controller.deciding.test_conductor import until
from tests.controller.house import House, Keys, batch, event, house
from tests.controller.postgres import Server, server
from tests.controller.telling.test_export import samples
from vocab.errors import CorralError, Unreachable

MEBIBYTE = 2**20


@pytest.fixture(scope="module")
def frail() -> Iterator[Server]:
    """A server of its own, for what is done to it."""
    with server() as made:
        yield made


@pytest.fixture
def keys(frail: Server) -> Keys:
    return frail.settings(frail.fresh())


class Agent:
    """A node that reports one event after another, each until it is acknowledged."""

    def __init__(self, home: House) -> None:
        self._home = home
        self.acknowledged = 0

    async def run(self) -> None:
        while True:
            number = self.acknowledged + 1
            with contextlib.suppress(CorralError):
                ack = await self._home.post("agent/batch", batch(event(number), first=number))
                self.acknowledged = ack["position"]
            await asyncio.sleep(0.01)

    async def goes_on(self) -> None:
        before = self.acknowledged
        async with asyncio.timeout(60):
            while self.acknowledged < before + 5:
                await asyncio.sleep(0.02)


@asynccontextmanager
async def reporting(home: House) -> AsyncIterator[Agent]:
    agent = Agent(home)
    task = asyncio.create_task(agent.run())
    try:
        await agent.goes_on()
        yield agent
        await agent.goes_on()
    finally:
        task.cancel()


async def check(home: House, agent: Agent) -> None:
    texts = [each["text"] for each in await home.get("events", limit=1000)]
    assert len(texts) == len(set(texts))
    assert {f"fault {number}" for number in range(1, agent.acknowledged + 1)} <= set(texts)


async def is_up(home: House) -> float:
    return samples((await home.raw("GET", "/metrics"))[1])["corral_store_up", ()]


async def test_database_that_is_killed_and_started_again_under_load(tmp_path: Path, frail: Server, keys: Keys) -> None:
    async with house(tmp_path, **keys) as home:
        async with reporting(home) as agent:
            await home.get("fleet")  # else what is shown may be a second old, and empty
            for end in (frail.kill, frail.stop):
                end()
                reason = await until(home, ready=False)
                assert "the store cannot" in reason or "refuses a connection" in reason
                assert await is_up(home) == 0.0
                assert (await home.get("fleet"))["nodes"]  # what was known is shown meanwhile
                frail.start()
                await until(home, ready=True)
                assert await is_up(home) == 1.0
                await agent.goes_on()
        await check(home, agent)


async def test_database_that_stands_still_refuses_in_time_and_comes_back(
    tmp_path: Path, frail: Server, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.store.dialects.ANSWER_S", 1.0)
    monkeypatch.setattr("controller.store.dialects.CONNECT_S", 1.0)
    async with house(tmp_path, **keys) as home:
        async with reporting(home) as agent:
            frail.freeze()
            try:
                reason = await until(home, ready=False)
                assert "in time" in reason or "does not answer" in reason
            finally:
                frail.thaw()
            await until(home, ready=True)
        await check(home, agent)


async def test_full_disk_of_the_database_refuses_says_so_and_loses_nothing(
    tmp_path: Path, frail: Server, keys: Keys
) -> None:
    async with house(tmp_path, **keys) as home:
        await home.post("agent/batch", batch(event(1)))
        frail.limit(3 * MEBIBYTE)
        try:
            acknowledged = await _fill(home)
            reason = await until(home, ready=False)
            assert "free space on the disk of PostgreSQL" in reason
        finally:
            frail.limit("unlimited")
        await until(home, ready=True)
        number = acknowledged + 1
        assert (await home.post("agent/batch", batch(event(number), first=number)))["position"] == number


async def _fill(home: House) -> int:
    """Report large events until the store refuses one; the last position that was acknowledged."""
    acknowledged = 1
    for _ in range(200):
        numbers = range(acknowledged + 1, acknowledged + 51)
        large = [event(number, text=secrets.token_hex(1500)) for number in numbers]
        try:
            ack = await home.post("agent/batch", batch(*large, first=numbers[0]))
        except Unreachable:
            return acknowledged
        acknowledged = ack["position"]
    raise AssertionError("the limit did not hold")
