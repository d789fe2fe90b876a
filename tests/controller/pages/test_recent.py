"""The last hour of a GPU: a node's recording is asked for once, however many pages want it."""

import asyncio

from controller.pages.recent import AT_ONCE, Place, Recent
from vocab.clock import VirtualClock


class Agents:
    """Agents that answer when they are let."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer = asyncio.Event()

    async def recording(self, address: str) -> bytes:
        self.asked.append(address)
        await self.answer.wait()
        return b""


async def opened(recent: Recent, addresses: list[str]) -> list[asyncio.Task[object]]:
    tasks = [asyncio.create_task(recent.of(each, Place("GPU-1", 0, "0"))) for each in addresses]
    for _ in range(10):
        await asyncio.sleep(0)
    return tasks  # type: ignore[return-value]


async def test_many_pages_of_one_node_ask_its_agent_once() -> None:
    agents = Agents()
    tasks = await opened(Recent(agents, VirtualClock()), ["http://n1"] * 50)  # type: ignore[arg-type]
    agents.answer.set()
    await asyncio.gather(*tasks)
    assert agents.asked == ["http://n1"]


async def test_no_more_than_a_few_recordings_are_asked_for_at_one_time() -> None:
    agents = Agents()
    tasks = await opened(Recent(agents, VirtualClock()), [f"http://n{number}" for number in range(50)])  # type: ignore[arg-type]
    assert len(agents.asked) == AT_ONCE
    agents.answer.set()
    await asyncio.gather(*tasks)
