"""The caller's end of the root helper's socket: one request, one reply, each verb with its own patience."""

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import Protocol

import agent
from agent.ending import gone, kill
from agent.roothelper.requests import (
    Able,
    AnyReply,
    AnyRequest,
    Ask,
    ClearReplica,
    Collect,
    EndReplica,
    ReadReplica,
    ReadReport,
    ReadUnit,
    Reboot,
    ResetGpus,
    RestartUnit,
    StartReplica,
    StartService,
    StartUnit,
    StopService,
    StopUnit,
    Survey,
    encoded,
    reply_of,
)
from agent.roothelper.virtual import SERVICES, VERBS
from vocab.errors import InputError, Unreachable

PATIENCE_S: dict[type, float] = {  # a little more than the helper gives itself
    Ask: 15.0,
    Survey: 60.0,
    StopService: 70.0,
    StartService: 70.0,
    Collect: 130.0,
    ResetGpus: 110.0,
    Reboot: 60.0,
    StartReplica: 75.0,  # it may wait for the starts of others
    EndReplica: 20.0,
    ReadReplica: 20.0,
    ClearReplica: 45.0,
    ReadUnit: 20.0,
    StopUnit: 120.0,  # these wait for a reset that is under way
    RestartUnit: 120.0,
    StartUnit: 120.0,
    ReadReport: 20.0,
}
MOST_REPLY = 1024 * 1024
CHILD_S = 20.0  # for a helper of a virtual node to listen; it takes a tenth of a second on an idle machine
STOP_S = 2.0  # it catches no signal
POLL_S = 0.05
_ROOT = Path(agent.__file__).resolve().parents[1]


class Helper(Protocol):
    """Whoever carries out verbs. Raises Unreachable if nobody does, or if how it ended was not seen."""

    async def ask(self, request: AnyRequest) -> AnyReply:
        """Have it done."""
        ...

    async def able(self) -> Able:
        """What it has the means for."""
        ...

    async def close(self) -> None:
        """Let it go."""
        ...


class SocketHelper:
    """The helper behind a socket that systemd listens on."""

    def __init__(self, place: Path) -> None:
        self._place = place

    async def ask(self, request: AnyRequest) -> AnyReply:
        """Have it done. Raises Unreachable."""
        try:
            async with asyncio.timeout(PATIENCE_S[type(request)]):
                return await self._ask(request)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, ValueError) as error:
            raise Unreachable(f"the root helper at {self._place} does not answer: {error or 'too late'}") from error
        except InputError as error:
            raise Unreachable(f"the root helper at {self._place} is of another version: {error}") from error

    async def able(self) -> Able:
        """What it says of itself. Raises Unreachable."""
        reply = await self.ask(Ask())
        if not isinstance(reply, Able):
            raise Unreachable(f"the root helper at {self._place} does not say what it can do: {reply}")
        return reply

    async def _ask(self, request: AnyRequest) -> AnyReply:
        reader, writer = await asyncio.open_unix_connection(self._place, limit=MOST_REPLY)
        try:
            writer.write(encoded(request))
            await writer.drain()
            return reply_of(await reader.readuntil(b"\n"))
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def close(self) -> None:
        """Nothing is kept open."""


class ChildHelper:
    """The helper of a virtual node: started as a child when it is needed; it ends by itself when it is not."""

    def __init__(self, state: Path, pause_file: Path) -> None:
        self._arguments = ("--virtual", str(state), "--pause-file", str(pause_file))
        self._place = state.with_name("roothelper.sock")
        self._socket = SocketHelper(self._place)
        self._child: asyncio.subprocess.Process | None = None

    async def ask(self, request: AnyRequest) -> AnyReply:
        """Have it done. Raises Unreachable."""
        if not await self._listens():
            await self._start()
        return await self._socket.ask(request)

    async def able(self) -> Able:
        """Known without asking: no child is started for it."""
        return Able(verbs=VERBS, services=SERVICES)

    async def _listens(self) -> bool:
        """Whether the child takes callers. One that is about to end for want of them does not."""
        try:
            _, writer = await asyncio.open_unix_connection(self._place)
        except OSError:
            return False
        writer.close()
        return True

    async def _start(self) -> None:
        await self.close()
        path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
        self._child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "agent.roothelper",
            *self._arguments,
            "--socket",
            str(self._place),
            stdin=asyncio.subprocess.DEVNULL,
            env={"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": path},
        )
        loop = asyncio.get_running_loop()
        deadline = loop.time() + CHILD_S
        while not await self._listens():
            if self._child.returncode is not None or loop.time() > deadline:
                raise Unreachable("the root helper of the virtual node does not start; the log says why")
            await asyncio.sleep(POLL_S)

    async def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        if child is not None and child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.terminate()
            if not await gone(child, STOP_S):
                await kill(child)
