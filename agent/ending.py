"""How a program that the agent started is ended: killed, waited for as long as that can take, and its pipes shut.

One that is not waited for still has open what its killer wants shut. A pipe that nobody reads to its end stays open,
even beyond the event loop. One that the kernel keeps, inside a driver or a dead disk, is left alone.
"""

import asyncio
import os
import signal
from contextlib import suppress

KILL_S = 2.0  # a killed process that is not gone by then is inside the kernel


async def kill(process: asyncio.subprocess.Process) -> None:
    """End the process alone, if it still runs."""
    with suppress(ProcessLookupError):
        process.kill()
    await gone(process, KILL_S)
    _shut(process)


async def kill_group(process: asyncio.subprocess.Process) -> None:
    """End all that it has started and not let go into a session of its own; it leads a process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await gone(process, KILL_S)
    _shut(process)


async def gone(process: asyncio.subprocess.Process, within_s: float) -> bool:
    """Wait for its end; whether it came in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await process.wait()
            return True
    return False


def _shut(process: asyncio.subprocess.Process) -> None:
    """Its pipes."""
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001  # asyncio has no other way to do it
