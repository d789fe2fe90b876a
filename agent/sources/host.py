"""The host source: memory, disk, clock, network ports, and processes that hang in the driver.

Everything is read in a child process (see host_child), which is never waited for. A group of reads that says nothing
for a while hangs: the source is degraded, the other groups go on. A child that ends is started again with back-off.
"""

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from agent.ending import gone, kill
from agent.sources.environment import of_child
from agent.sources.host_child import GROUPS, Options
from agent.sources.source import Emit
from vocab.clock import Clock
from vocab.observations import HostSample, ProcessSeen, SourceState
from wire.backoff import delay_s

PERIOD_S = 10.0  # nothing of a host changes so fast that a second matters; three looks are half a minute
SILENT_S = 30.0  # a group that has not been read for so long hangs
LOOK_S = 5.0  # each is a wake-up of the agent
STOP_S = 2.0
RETRY_MOST_S = 60.0
MAX_LINE = 2**20  # a look at a host of 64 ports is some 30 KiB


class Said(msgspec.Struct, frozen=True):
    """One line of the child: a look of one group of reads; ``gone``: there is nothing to look at any more."""

    group: str
    seen: tuple[HostSample | ProcessSeen, ...] = ()
    gone: bool = False


_decode = msgspec.json.Decoder(Said).decode


class HostSource:
    """Emits HostSample, ProcessSeen and SourceState of the source ``host``.

    ``ports`` names network ports that have to be up; of all others those count that had a link in this boot.
    """

    name = "host"

    def __init__(
        self,
        node: str,
        state_dir: Path,
        clock: Clock,
        *,
        ports: tuple[str, ...] = (),
        proc: Path = Path("/proc"),
        sys_: Path = Path("/sys"),
        period_s: float = PERIOD_S,
        silent_s: float = SILENT_S,
        look_s: float = LOOK_S,
        retry_s: float = 1.0,
    ) -> None:
        self._node = node
        self._clock = clock
        self._options = Options(node, str(proc), str(sys_), str(state_dir), period_s, ports)
        self._silent_s = silent_s
        self._look_s = look_s
        self._retry_s = retry_s
        self._heard: dict[str, float] = {}  # when each group last spoke
        self._said: tuple[str, str | None] | None = None
        self._emit: Emit = lambda _: None

    async def run(self, emit: Emit) -> None:
        """Observe until cancelled."""
        self._emit = emit
        attempt = 0
        while True:
            try:
                child = await self._start()
            except OSError as error:
                attempt += 1
                self._say("down", f"NOT_STARTED: {sys.executable} cannot be run: {error.strerror}")
            else:
                spoke = await self._attend(child)
                attempt = 1 if spoke else attempt + 1
                died = f"the process that reads the host has ended (exit code {child.returncode})"
                self._say("down", f"CHILD_DIED: {died}")
            await asyncio.sleep(delay_s(attempt, self._node, first_s=self._retry_s, most_s=RETRY_MOST_S))

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "agent.sources.host_child",
            json.dumps(self._options._asdict()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=of_child(),
            limit=MAX_LINE,
        )

    async def _attend(self, child: asyncio.subprocess.Process) -> bool:
        """Hear a child until it ends; whether it said anything."""
        self._heard = dict.fromkeys(GROUPS, self._clock.monotonic())
        try:
            return await self._hear(child)
        finally:
            await _end(child)

    async def _hear(self, child: asyncio.subprocess.Process) -> bool:
        assert child.stdout is not None
        spoke = False
        while True:
            line = b""
            with suppress(TimeoutError):
                async with asyncio.timeout(self._look_s):
                    line = await child.stdout.readline()
                    if not line:
                        return spoke
            if line:
                spoke = True
                self._take(_decode(line))
            self._look()

    def _take(self, said: Said) -> None:
        if said.gone:
            self._heard.pop(said.group, None)
        else:
            self._heard[said.group] = self._clock.monotonic()
        for seen in said.seen:
            self._emit(seen)

    def _look(self) -> None:
        now = self._clock.monotonic()
        silent = [group for group, heard in self._heard.items() if now - heard >= self._silent_s]
        if silent:
            self._say("degraded", f"HUNG: {', '.join(silent)} of the host cannot be read: a file of the kernel hangs")
        else:
            self._say("up")

    def _say(self, state: str, error: str | None = None) -> None:
        """Report the source's state if it is news."""
        if (state, error) != self._said:
            self._said = state, error
            self._emit(SourceState(at=self._clock.now(), node=self._node, source=self.name, state=state, error=error))


async def _end(child: asyncio.subprocess.Process) -> None:
    """Let it end by itself; one that does not is killed."""
    if child.stdin is not None:
        child.stdin.close()
    await gone(child, STOP_S)
    await kill(child)
