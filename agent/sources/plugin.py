"""A check of the node's owner: a program that prints one JSON object, run now and then.

    {"result": "pass" | "problem" | "unknown", "code"?, "gpu"?, "text"?, "fatal"?, "readings"?}

It runs without a shell, in a clean environment, in a process group of its own that is killed as a whole when its time
is over, with all that it has let go elsewhere, and as ``nobody`` where the agent is root. Only what it says itself can
be a problem: no output, more than one object, an exit code that is not 0, too long a wait are all *unknown*, with the
reason (docs/plugins.md).
"""

import asyncio
import os
import secrets
import signal
import time
from contextlib import suppress
from hashlib import blake2b
from pwd import getpwnam
from typing import Any, Literal

import msgspec

from agent.config import Plugin
from agent.ending import kill_group
from agent.sources import offspring
from agent.sources.source import Emit
from vocab.clock import Clock
from vocab.errors import SourceDown
from vocab.observations import Check, SourceState

USER = "nobody"
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/"}
MOST_OUTPUT = 64 * 1024
MOST_SAID = 300  # of its standard error, as a reason
MOST_TEXT = 2000
MOST_READINGS = 64
SPREAD_S = 10.0  # so that the plug-ins of a node do not all start at once

Scalar = bool | int | float | str | None


class Said(msgspec.Struct, frozen=True):
    """What a plug-in printed; keys that are not ours are ignored."""

    result: Literal["pass", "problem", "unknown"]
    code: str | None = None
    gpu: str | None = None
    text: str | None = None
    fatal: bool | None = None
    readings: dict[str, Scalar] | None = None


class PluginSource:
    """Emits Check (named ``plugin:NAME``), and SourceState of the source of the same name."""

    def __init__(self, node: str, plugin: Plugin, clock: Clock, *, spread_s: float = SPREAD_S) -> None:
        self._node = node
        self._plugin = plugin
        self._clock = clock
        self._spread_s = min(spread_s, plugin.period_s)
        self._left: asyncio.subprocess.Process | None = None  # killed, and still inside the kernel
        self._said: tuple[str, str | None] | None = None
        self._emit: Emit = lambda _: None

    @property
    def name(self) -> str:
        """Of the source and of its checks; no check of our own begins so."""
        return f"plugin:{self._plugin.name}"

    async def run(self, emit: Emit) -> None:
        """Run it once a period until cancelled."""
        self._emit = emit
        digest = blake2b(f"{self._node}/{self.name}".encode(), digest_size=2).digest()
        await asyncio.sleep(self._spread_s * int.from_bytes(digest, "big") / 65536)
        while True:
            began = self._clock.monotonic()
            await self._once()
            await asyncio.sleep(max(0.0, began + self._plugin.period_s - self._clock.monotonic()))

    async def _once(self) -> None:
        try:
            said = decode(await self._output())
        except SourceDown as error:
            self._say("down", str(error))
            self._emit(Check(at=self._clock.now(), node=self._node, check=self.name, result="unknown", text=str(error)))
        else:
            self._say("up")
            self._emit(_check(said, self.name, self._clock.now(), self._node))

    async def _output(self) -> bytes:
        """What it prints. Raises SourceDown with the reason why that is nothing."""
        if self._left is not None and self._left.returncode is None:
            raise SourceDown(f"STUCK: process {self._left.pid} of the last run cannot be killed: it is in the kernel")
        mark, began_s = secrets.token_hex(8), time.clock_gettime(time.CLOCK_BOOTTIME)
        process = await self._start(mark)
        self._left = process
        try:
            async with asyncio.timeout(self._plugin.timeout_s):
                assert process.stdout is not None
                assert process.stderr is not None
                out, err, code = await asyncio.gather(
                    _read(process.stdout), _read(process.stderr), _end(process, mark, began_s)
                )
        except TimeoutError as error:
            raise SourceDown(f"TIMEOUT: it did not end within {self._plugin.timeout_s:g} s and was killed") from error
        finally:
            await kill_group(process)
            await offspring.end(mark, began_s)
        if code != 0:
            how = f"ended with {code}" if code > 0 else f"was ended by {signal.Signals(-code).name}"
            words = " ".join(err.decode(errors="replace").split())[:MOST_SAID]
            raise SourceDown(f"EXIT: it {how}{': ' + words if words else ''}")
        return out

    async def _start(self, mark: str) -> asyncio.subprocess.Process:
        """Start it; should we be cancelled meanwhile, it is ended first, with what it may have started by then."""
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *self._plugin.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd="/",
                env=ENVIRONMENT | {offspring.NAME: mark},
                start_new_session=True,
                **_user(),
            )
        )
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            with suppress(OSError):
                await kill_group(await starting)
            raise
        except OSError as error:
            raise SourceDown(f"NOT_STARTED: {self._plugin.command[0]}: {error.strerror}") from error

    def _say(self, state: str, error: str | None = None) -> None:
        """Report the source's state if it is news."""
        if (state, error) != self._said:
            self._said = state, error
            self._emit(SourceState(at=self._clock.now(), node=self._node, source=self.name, state=state, error=error))


def decode(output: bytes) -> Said:
    """The one JSON object that this is. Raises SourceDown if it is none of the right form."""
    try:
        said = msgspec.json.decode(output, type=Said)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SourceDown(f"OUTPUT: it did not print one JSON object of the right form: {error}") from error
    if len(said.readings or ()) > MOST_READINGS:
        raise SourceDown(f"OUTPUT: it printed more than {MOST_READINGS} readings")
    return said


def _check(said: Said, name: str, at: float, node: str) -> Check:
    text = None if said.text is None else "".join(c if c.isprintable() else " " for c in said.text[:MOST_TEXT])
    readings: dict[str, Any] | None = said.readings
    return Check(
        at=at, node=node, check=name, gpu=said.gpu, result=said.result, code=said.code, text=text, fatal=said.fatal,
        readings=readings,
    )  # fmt: skip


async def _end(process: asyncio.subprocess.Process, mark: str, began_s: float) -> int:
    """Its exit code. What it left behind is ended then, or its output would not end.

    asyncio's own ``wait`` comes back only when every pipe is shut, also those that such a child holds.
    """
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    with suppress(ProcessLookupError):
        watched = os.pidfd_open(process.pid)
        loop.add_reader(watched, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(watched)
            os.close(watched)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await offspring.end(mark, began_s)
    return await process.wait()


async def _read(stream: asyncio.StreamReader) -> bytes:
    """All of it. Raises SourceDown if it is too much."""
    found = bytearray()
    while part := await stream.read(8192):
        found += part
        if len(found) > MOST_OUTPUT:
            raise SourceDown(f"OUTPUT: it printed more than {MOST_OUTPUT} bytes")
    return bytes(found)


def _user() -> dict[str, Any]:
    """Whose rights it has: the agent's own, which are few, or nobody's where those are root's."""
    if os.geteuid() != 0:
        return {}
    try:
        nobody = getpwnam(USER)
    except KeyError as error:
        raise SourceDown(f"NO_USER: the agent is root and there is no user {USER} to run the plug-in as") from error
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
