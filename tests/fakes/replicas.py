"""Fake replicas as a test uses them: a program of its own, or the same service within the test's event loop."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import aiohttp

from tests.fakes.replica.options import Options
from tests.fakes.replica.service import Service
from tests.ports import free_ports

PROGRAM = Path(__file__).resolve().parent / "replica"
PATIENCE_S = 60.0


class FakeReplica:
    """One fake replica in this event loop: it starts in no time, and ``kill`` breaks its connections."""

    def __init__(self, replica: str, folder: Path, deployment: str = "chat", **options: Any) -> None:
        self.replica = replica
        self.deployment = deployment
        self.port = free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self.options = Options(
            replica=replica,
            listen=f"127.0.0.1:{self.port}",
            beat=folder / f"{replica}.beat",
            served_name=deployment,
            **options,
        )
        self._running: asyncio.Task[int] | None = None

    async def start(self) -> None:
        """Start it and wait until it answers (ready or not)."""
        service = Service(self.options, die=lambda _: self._crash())
        self._running = asyncio.create_task(service.run())
        await self._answers()

    async def _answers(self) -> None:
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while asyncio.get_running_loop().time() < deadline and not self.ended:
            try:
                await self._ask("GET", "/health")
            except aiohttp.ClientError:
                await asyncio.sleep(0.02)
            else:
                return
        raise AssertionError(f"fake replica {self.replica} does not answer at {self.url}")

    async def _ask(self, method: str, path: str, body: Any = None) -> Any:
        async with aiohttp.ClientSession() as session, session.request(method, self.url + path, json=body) as response:
            return await response.json()

    def _crash(self) -> None:
        assert self._running is not None
        self._running.cancel()

    async def control(self, **orders: Any) -> None:
        """Tell it how to fail; see misbehaviour.py."""
        await self._ask("POST", "/control", orders)

    async def fence(self) -> None:
        """As its agent would."""
        await self._ask("POST", "/drain", {"exit": False, "reason": "fenced"})

    async def drain(self, ttl_s: float = 60.0) -> None:
        """As its agent would."""
        await self._ask("POST", "/drain", {"exit": True, "ttl_s": ttl_s})

    async def open_requests(self) -> int:
        """How many requests it works on."""
        return int((await self._ask("POST", "/control", {}))["open"])

    @property
    def ended(self) -> bool:
        """Whether it is gone."""
        return self._running is None or self._running.done()

    async def wait(self) -> int:
        """Its exit code, once it has ended."""
        assert self._running is not None
        return await self._running

    async def kill(self) -> None:
        """End it at once, if it still runs."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)


class ReplicaProgram(FakeReplica):
    """The same as a process of its own, which can be signalled."""

    _child: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it and wait until it answers (ready or not)."""
        options = self.options
        words = ("--replica", self.replica, "--listen", options.listen, "--beat", str(options.beat))
        more = ("--served-name", self.deployment, "--rate", str(options.rate))
        self._child = await asyncio.create_subprocess_exec(sys.executable, str(PROGRAM), *words, *more)
        await self._answers()

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._child is None or self._child.returncode is not None

    def send(self, number: signal.Signals) -> None:
        """Signal it."""
        assert self._child is not None
        os.kill(self._child.pid, number)

    async def kill(self) -> None:
        """End it at once, if it still runs."""
        if self._child is not None and self._child.returncode is None:
            self._child.kill()
            await self._child.wait()
