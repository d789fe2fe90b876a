"""What is shown of the fleet while the store is out, though nobody has looked before."""

import asyncio
from types import SimpleNamespace
from typing import Any

from controller.deciding.shown import Shown
from vocab.errors import Unreachable


async def test_what_nobody_looked_at_is_kept_all_the_same_and_shown_while_the_store_is_out() -> None:
    kept = asyncio.Event()

    def picture() -> str:
        kept.set()
        return "what was known"

    mind: Any = SimpleNamespace(core=SimpleNamespace(draw=lambda most: None), view=picture)
    others: Any = SimpleNamespace(publish=lambda news: None, store_up=lambda up: None)
    shown = Shown(mind, others, others)
    shown.open()
    shown.show()
    drawing = asyncio.create_task(shown.draw())
    async with asyncio.timeout(60):
        await kept.wait()
    drawing.cancel()
    shown.settled.clear()  # a turn has begun that does not end
    shown.close(Unreachable("the store is out"))
    assert await shown.view() == "what was known"
