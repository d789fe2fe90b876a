"""The house: controller, agent and gateway as child processes, restarted when they die, stopped together.

What runs is written to ``house.json``, so that a house that was killed leaves nothing behind for ever:
the next one stops those processes first. Replicas belong to the agent and outlive it; only the house's
end stops them.
"""

import asyncio
import contextlib
import fcntl
import os
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import msgspec

from agent.replicas.identity import Identity, boot_id, stat
from corral.up.plan import Plan
from corral.up.processes import replicas, stop
from vocab.errors import ConfigError, CorralError, Refused, Unreachable
from wire.client import Client
from wire.disk import write_durably

MODULES = {"controller": "controller", "agent": "agent", "gateway": "engine.gateway"}
READY_S = 45.0  # a process that is not ready by then will not be
RESTART_S = 1.0
GRACE_S = 4.0


class House:
    """The processes of one plan. Use as ``async with House(plan).opened() as house``."""

    def __init__(
        self, plan: Plan, *, restart: bool = True, on_failure: Callable[[CorralError], None] | None = None
    ) -> None:
        self.plan = plan
        self._restart = restart
        self._on_failure = on_failure
        self._configs: dict[str, Path] = {}
        self._children: dict[str, asyncio.subprocess.Process] = {}
        self._wanted: set[str] = set()
        self._lock: IO[bytes] | None = None
        self._watchers: set[asyncio.Task[None]] = set()
        self._abandoned = False

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator["House"]:
        """Everything started and answering; stopped again at the end, whatever happens."""
        self._take()
        try:
            for name in MODULES:
                await self.start(name)
            yield self
        finally:
            await self.close()

    def _take(self) -> None:
        try:
            self.plan.state.mkdir(parents=True, exist_ok=True)
            self._lock = (self.plan.state / "house.lock").open("wb")
        except OSError as error:
            raise ConfigError(
                f"--state: {self.plan.state} cannot be used: {error.strerror}; choose a folder that you may write to"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Refused(f"a fleet already runs on {self.plan.state}; stop it, or choose another --state") from error
        self._sweep()
        self._configs = self.plan.write_configs()

    def _sweep(self) -> None:
        """End what an earlier house left, then forget its run folder, as a reboot would."""
        stop([*self._recorded(), *replicas(self.plan.run)], GRACE_S)
        shutil.rmtree(self.plan.run, ignore_errors=True)

    def _recorded(self) -> list[Identity]:
        try:
            return msgspec.json.decode((self.plan.state / "house.json").read_bytes(), type=list[Identity])
        except (OSError, msgspec.DecodeError):
            return []

    def _record(self) -> None:
        boot = boot_id()
        living = [
            Identity(child.pid, seen.start_s, boot)
            for child in self._children.values()
            if child.returncode is None and (seen := stat(child.pid)) is not None
        ]
        write_durably(self.plan.state / "house.json", msgspec.json.encode(living))

    async def start(self, name: str) -> None:
        """Start one process and wait until it is ready. Raises ConfigError with its last words if it ends."""
        _must_be_free(name, self._url(name))
        self._wanted.add(name)
        with (self.plan.logs / f"{name}.log").open("ab") as log:
            child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                MODULES[name],
                "--config",
                str(self._configs[name]),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches the house alone, which stops all in order
                cwd=self.plan.state,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )
        self._children[name] = child
        self._record()
        watcher = asyncio.create_task(self._watch(name, child))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)
        await self._ready(name, child)

    async def _ready(self, name: str, child: asyncio.subprocess.Process) -> None:
        url = self._url(name)
        deadline = asyncio.get_running_loop().time() + READY_S
        async with Client(url) as client:
            while child.returncode is None:
                try:
                    await client.call("GET", "/healthz", dict, timeout_s=1.0)
                    return
                except Unreachable:
                    if asyncio.get_running_loop().time() > deadline:
                        raise Unreachable(f"{name} does not answer at {url}; see {self._log(name)}") from None
                await asyncio.sleep(0.1)
        raise ConfigError(f"{name} ended with code {child.returncode}: {self._last_words(name)}")

    def _url(self, name: str) -> str:
        return {"controller": self.plan.controller, "agent": self.plan.agent, "gateway": self.plan.gateway}[name]

    def _log(self, name: str) -> Path:
        return self.plan.logs / f"{name}.log"

    def _last_words(self, name: str) -> str:
        lines = self._log(name).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"it said nothing ({self._log(name)})"

    async def _watch(self, name: str, child: asyncio.subprocess.Process) -> None:
        code = await child.wait()
        if name not in self._wanted or self._children.get(name) is not child or not self._restart:
            return
        if code == ConfigError.exit_code:
            if self._on_failure:
                self._on_failure(ConfigError(f"{name} ended: {self._last_words(name)}"))
            return
        await asyncio.sleep(RESTART_S)
        if name in self._wanted:
            with contextlib.suppress(CorralError):  # it is watched again; its log says what is wrong
                await self.start(name)

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to one process, as a fault would."""
        self._children[name].send_signal(number)

    async def ended(self, name: str) -> int:
        """Wait until the process has ended; its exit code."""
        return await self._children[name].wait()

    def abandon(self) -> None:
        """Let go of everything as a house does that is killed: nothing is stopped, the next one sweeps."""
        self._wanted.clear()
        self._children.clear()
        self._abandoned = True
        if self._lock:
            self._lock.close()

    async def close(self) -> None:
        """Stop all: gateway, controller, agent, then the replicas; leaves no process behind."""
        if self._abandoned:
            return
        self._wanted.clear()
        for child in self._children.values():
            if child.returncode is None:
                child.terminate()
        await asyncio.to_thread(stop, self._recorded(), GRACE_S)
        await asyncio.to_thread(stop, replicas(self.plan.run), GRACE_S)
        for watcher in list(self._watchers):
            watcher.cancel()
        self._children.clear()
        self._record()
        if self._lock:
            self._lock.close()


def _must_be_free(name: str, url: str) -> None:
    """Another program there would answer in our child's place. Raises ConfigError."""
    place = urlsplit(url)
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what a child that just died left does not count
        try:
            door.bind((place.hostname, place.port))
        except OSError as error:
            raise ConfigError(
                f"{name}: {place.netloc} cannot be used: {error.strerror}; stop its user or choose another --base-port"
            ) from error
