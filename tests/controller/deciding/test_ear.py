"""Who listens knows when it did not."""

import asyncio
from pathlib import Path

import msgspec

from controller.deciding.ear import EVERY_S, Ear
from controller.deciding.mind import real_core
from tests.controller.house import batch, facts, house
from vocab.clock import VirtualClock


def test_who_is_asked_in_time_was_never_deaf() -> None:
    clock = VirtualClock(0.0)
    ear = Ear(clock.monotonic)
    for _ in range(10):
        clock.advance(EVERY_S + 0.4)
        assert ear.listened() == 0.0


def test_what_is_beyond_the_usual_counts_once() -> None:
    clock = VirtualClock(0.0)
    ear = Ear(clock.monotonic)
    clock.advance(20.0 + EVERY_S)
    assert ear.listened() == 20.0
    assert ear.listened() == 0.0


async def test_a_report_that_waits_for_its_turn_is_no_silence_in_a_real_controller(tmp_path: Path) -> None:
    clock = VirtualClock(1_796_000_000.0)
    async with house(tmp_path, clock=clock, make_core=real_core) as home:
        await home.post("agent/batch", batch())
        clock.advance(12.0)
        waiting = home.inside.conductor.hear(batch())  # it has arrived, and no turn has come to it
        assert waiting is not None
        clock.advance(12.0)
        await home.post("pause", {"reason": "a turn of something else"})
        assert (await home.get("fleet"))["nodes"][0]["state"] == "live"


async def test_who_was_kept_waiting_until_it_was_told_to_come_again_is_no_silence(tmp_path: Path) -> None:
    clock = VirtualClock(1_796_000_000.0)
    async with house(tmp_path, clock=clock, make_core=real_core) as home:
        await home.post("agent/batch", batch())
        conductor = home.inside.conductor
        async with home.inside.store.writing():  # the disk is busy: no turn ends
            other = msgspec.structs.replace(batch(), node="n2", facts=facts("n2"))
            before = asyncio.create_task(home.post("agent/batch", other))
            left = conductor.hear(batch())
            assert left is not None
            waiting = asyncio.create_task(conductor.submit(left))
            await asyncio.sleep(0)
            clock.advance(12.0)
            waiting.cancel()
            await asyncio.wait([waiting])
            clock.advance(12.0)
        await before
        await home.post("pause", {"reason": "a turn of something else"})
        assert {each["node"]: each["state"] for each in (await home.get("fleet"))["nodes"]}["n1"] == "live"
