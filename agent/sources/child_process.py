"""A started child process, from the outside: its pipes, its call table, and how it is told to end."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.calls import Call, CallTable
from agent.ending import gone, kill
from agent.sources.environment import of_child
from agent.sources.frames import LENGTH, MAX_FRAME, SLOTS, Frame, decode

STOP_S = 2.0


class ChildProcess:
    """The child; make it with ``start``."""

    def __init__(self, process: asyncio.subprocess.Process, table: CallTable) -> None:
        self._process = process
        self._table = table

    @classmethod
    async def start(
        cls, module: str, table: Path, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> "ChildProcess":
        """Start ``python -m module`` on a new call table in the file ``table``."""
        table.parent.mkdir(parents=True, exist_ok=True)
        calls = CallTable.create(table, SLOTS)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            module,
            "--calls",
            str(table),
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**of_child(), **environment},
            limit=MAX_FRAME,
        )
        return cls(process, calls)

    @property
    def pid(self) -> int:
        """Of the child."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it is gone."""
        return self._process.returncode is not None

    def under_way(self) -> dict[int, Call]:
        """The calls that its threads are in, by slot."""
        return dict(self._table.all_under_way())

    async def frame(self) -> Frame | None:
        """The next frame, or None once the child has ended."""
        assert self._process.stdout is not None
        try:
            (length,) = LENGTH.unpack(await self._process.stdout.readexactly(LENGTH.size))
            return decode(await self._process.stdout.readexactly(length))
        except asyncio.IncompleteReadError:
            return None

    def tell(self, line: str) -> None:
        """Write it a line; lost if the child is ending."""
        if self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.write(line.encode() + b"\n")

    async def wait(self) -> int:
        """Its exit code, once its pipe has ended."""
        return await self._process.wait()

    def let_go(self) -> None:
        """Tell it to end: at once, unless it is inside the driver and the kernel keeps it there."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def stop(self) -> None:
        """End it; one that the kernel keeps inside the driver is killed and soon left alone."""
        self.let_go()
        await gone(self._process, STOP_S)
        await kill(self._process)
