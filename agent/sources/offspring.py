"""What a program has started, wherever it went: known by a mark in the environment that it was started with.

A child that has left its process group and session, and whose parent has ended, shows its origin nowhere else. Reading
an environment can hang with its process, so this runs beside the loop and looks only at what is as young as the mark.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

NAME = "CORRAL_RUN"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
ROUNDS = 5  # one that starts others while it is ended is met again
WITHIN_S = 2.0


def marked(mark: str, since_s: float, proc: Path = Path("/proc")) -> Iterator[int]:
    """The living processes that bear the mark, of those that began since (seconds after boot)."""
    wanted = f"{NAME}={mark}".encode()
    for folder in proc.iterdir():
        if not folder.name.isdecimal():
            continue
        with suppress(OSError, IndexError, ValueError):
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            young = int(fields[19]) / TICKS_PER_S >= since_s - 1.0
            if young and fields[0] not in b"ZX" and wanted in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)


async def end(mark: str, since_s: float) -> None:
    """Kill them all; what hangs in the kernel is left alone."""
    done: Future[None] = Future()

    def work() -> None:
        for _ in range(ROUNDS):
            found = list(marked(mark, since_s))
            for pid in found:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if not found:
                break
        done.set_result(None)

    threading.Thread(target=work, name="offspring", daemon=True).start()
    with suppress(TimeoutError):
        async with asyncio.timeout(WITHIN_S):
            await asyncio.shield(asyncio.wrap_future(done))
