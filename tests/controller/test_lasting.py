"""Loops beside the one that thinks do not end unnoticed."""

import asyncio

from controller.lasting import lasting


async def test_a_loop_that_fails_unforeseen_begins_anew() -> None:
    lives, again = [], asyncio.Event()

    async def run() -> None:
        lives.append(len(lives))
        if len(lives) == 1:
            raise ZeroDivisionError
        again.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(lasting("a loop", run))
    async with asyncio.timeout(60):
        await again.wait()
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])
    assert (lives, task.cancelled()) == ([0, 1], True)
