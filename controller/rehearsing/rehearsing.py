"""The process that rehearses, from the controller's side: started, listened to, ended."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator

import msgspec

from controller.rehearsing.told import AnyTold, Brief, Failed, Progress

LONGEST = 2**24  # of one line: the last one names each rule, and twenty places of each
QUIET_S = 10.0  # between two words to whoever waits: proxies cut what says nothing
PROGRAM = ("-m", "controller.rehearsing")


class Rehearsing:
    """At most one at a time: it takes a core."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None

    @property
    def busy(self) -> bool:
        """Whether one is under way."""
        return self._lock.locked()

    @property
    def pid(self) -> int | None:
        """The process, if one is under way."""
        return None if self._process is None else self._process.pid

    async def play(self, brief: Brief) -> AsyncGenerator[AnyTold, None]:
        """What it tells, to the end; who stops listening ends it."""
        async with self._lock:
            process = await asyncio.create_subprocess_exec(
                sys.executable, *PROGRAM, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LONGEST
            )
            self._process = process
            try:
                assert process.stdin is not None
                process.stdin.write(msgspec.json.encode(brief) + b"\n")
                async for told in _lines(process):
                    yield told
            finally:
                self._process = None
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()

    def close(self) -> None:
        """End what is under way: the controller stops."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()


async def _lines(process: asyncio.subprocess.Process) -> AsyncGenerator[AnyTold, None]:
    """Each line as it comes, and the last progress again when nothing came for a while."""
    assert process.stdout is not None
    last: AnyTold = Progress(events=0, stored=0)
    reading = asyncio.ensure_future(process.stdout.readline())
    try:
        while True:
            done, _ = await asyncio.wait({reading}, timeout=QUIET_S)
            if done:
                line = reading.result()
                if not line.endswith(b"\n"):
                    yield Failed(why="it ended before it was done: the controller stops, or its log says more")
                    return
                last = msgspec.json.decode(line, type=AnyTold)
                reading = asyncio.ensure_future(process.stdout.readline())
            yield last
            if not isinstance(last, Progress):
                return
    finally:
        reading.cancel()
