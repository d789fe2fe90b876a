"""Loops beside the one that thinks: what fails in one of them unforeseen is said, and it begins anew.

None of them may end unnoticed: without the hand on the power, or a keeper, orders would stand and nothing would be
done; and none of them may end the controller, for all others depend on it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from wire.backoff import delay_s

log = logging.getLogger(__name__)

AGAIN_FIRST_S, AGAIN_MOST_S = 1.0, 60.0


async def lasting(name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run a loop until cancelled."""
    tries = 0
    while True:
        try:
            await run()
        except Exception:  # the outermost edge of its task: what it did not foresee must not end it
            log.exception("%s failed; it begins anew", name)
        tries += 1
        await asyncio.sleep(delay_s(tries, name, first_s=AGAIN_FIRST_S, most_s=AGAIN_MOST_S))
