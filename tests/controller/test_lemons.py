"""A lemon becomes an event: a reason to look, told once, that holds nothing."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from controller.core.fleet.lemons import lemons
from controller.deciding.mind import real_core
from controller.store.lemons import _signals
from controller.store.records import Write
from tests.controller.house import House, Keys, batch, event, facts, house, uuid
from vocab.clock import VirtualClock
from vocab.events import epoch_s
from vocab.lines import EventLine, Subject

BEGAN = epoch_s(str(event(1).at))
CODES = ("xid:79", "xid:48", "xid:95", "xid:64", "xid:119")


async def suffer(home: House) -> None:
    """Two weeks of faults of one card, in the store alone, rolled up."""
    lines = [
        EventLine(at=BEGAN - day * 86_400.0, subject=Subject(gpu=uuid(0)), event=event(day, code=CODES[day % 5]))
        for day in range(14)
    ]
    await home.inside.store.commit(Write(at=BEGAN, lines=lines))
    await home.inside.housekeeping.roll_up()


async def test_a_lemon_is_told_once_and_holds_nothing(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database, make_core=real_core, clock=VirtualClock(BEGAN)) as home:
        await home.post("agent/batch", batch(facts=facts()))
        await suffer(home)
        await home.inside.housekeeping.tell_lemons()
        await home.inside.housekeeping.tell_lemons()
        (told,) = await home.get("events", code="lemon")
        assert (told["gpu"], told["node"], told["severity"], told["recovery"]) == (
            uuid(0),
            "n1",
            "warning",
            "investigate",
        )
        assert "fault_codes 5 in 28 days" in told["text"]
        (gpu, _) = await home.get("gpus")
        assert "lemon" in str(gpu["conditions"])
        assert await home.get("holds") == []
        assert await home.get("incidents") == []


class Beside(ThreadPoolExecutor):
    """The threads beside the loop, and what they were given to do."""

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self.given: list[Any] = []

    def submit(self, work: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        self.given += getattr(work, "args", ())[:1]
        return super().submit(work, *args, **more)


async def test_what_takes_seconds_of_a_large_fleet_is_weighed_beside_the_loop(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core, clock=VirtualClock(BEGAN)) as home:
        await home.post("agent/batch", batch(facts=facts()))
        await suffer(home)
        beside = Beside()
        asyncio.get_running_loop().set_default_executor(beside)
        await home.inside.housekeeping.tell_lemons()
        assert [work for work in beside.given if work in {_signals, lemons}] == [_signals, lemons]


async def test_a_card_that_its_node_lists_no_longer_is_not_told(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core, clock=VirtualClock(BEGAN)) as home:
        await home.post("agent/batch", batch(facts=facts()))
        await home.post("agent/batch", batch(facts=facts(gpus=0)))
        await suffer(home)
        await home.inside.housekeeping.tell_lemons()
        assert await home.get("events", code="lemon") == []
