"""A node for tests: a real supervisor, real processes of the fake replica, and patience with a deadline."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp

from agent.replicas import identity
from agent.replicas.launch import Launch, Spawn, spawn_detached
from agent.replicas.record import Folder, known, marks
from agent.replicas.supervisor import Supervisor
from tests.ports import free_ports
from vocab.clock import SystemClock
from vocab.messages import ReplicaSpec, ReplicaStatus
from vocab.observations import Member

ROOT = Path(__file__).resolve().parents[3]
FAKE = (sys.executable, str(ROOT / "tests" / "fakes" / "replica"))
PATIENCE_S = 60.0


def spec(replica: str, *gpus: str, phase: str = "run", token: str = "1.1", **more: Any) -> ReplicaSpec:
    """A replica of ``chat`` on these GPUs, with times short enough for a test."""
    members = tuple(Member(node="n1", gpu=gpu, rank=rank) for rank, gpu in enumerate(gpus or (f"GPU-{replica}",)))
    times = {"drain_s": 20.0, "kill_s": 1.0, **more}
    return ReplicaSpec(
        replica=replica, deployment="chat", members=members, model="none", phase=phase, token=token, **times
    )


def with_flags(*flags: str) -> Spawn:
    """Starts the fake replica with more flags."""

    def spawn(launch: Launch) -> int:
        return spawn_detached(Launch((*launch.argv, *flags), launch.env, launch.log))

    return spawn


class Node:
    """A run folder and the supervisors that run on it, one after another."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.base_port = free_ports(1)[0]
        self.supervisor = self.make()
        self._loops: list[asyncio.Task[None]] = []

    def make(self, *, spawn: Spawn = spawn_detached, **more: Any) -> Supervisor:
        options = {"node": "n1", "program": FAKE, "spawn": spawn, **more}
        self.supervisor = Supervisor(self.run_dir, SystemClock(), self.base_port, **options)
        return self.supervisor

    def run(self) -> None:
        """Let the current supervisor's loop run."""
        self._loops.append(asyncio.create_task(self.supervisor.run()))

    async def halt(self) -> None:
        """End the loops; the replicas live on."""
        for task in self._loops:
            task.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        self._loops.clear()

    async def up(self, *specs: ReplicaSpec) -> None:
        """Converge, run, and wait until all that should run is ready."""
        self.supervisor.converge(specs)
        self.run()
        for each in specs:
            await self.phase(each.replica, "ready")

    def status(self, replica: str) -> ReplicaStatus:
        return next(each for each in self.supervisor.statuses() if each.replica == replica)

    async def phase(self, replica: str, phase: str) -> ReplicaStatus:
        await until(lambda: self.status(replica).phase == phase, f"{replica} {phase}")
        return self.status(replica)

    def sweep(self) -> None:
        """Kill every process that this run folder still names."""
        boot = identity.boot_id()
        for name in known(self.run_dir):
            found = identity.find(marks(name, Folder(self.run_dir, name).beat), boot)
            if found is not None:
                identity.send_to_session(found, f"CORRAL_REPLICA={name}", signal.SIGKILL, boot)


async def until(condition: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    """Poll until ``condition`` is true; its value. Fails naming ``what``."""
    deadline = asyncio.get_running_loop().time() + patience_s
    while asyncio.get_running_loop().time() < deadline:
        value = condition()
        if value:
            return value
        await asyncio.sleep(0.02)
    raise AssertionError(f"never happened: {what}")


@contextlib.asynccontextmanager
async def stream(url: str, tokens: int) -> AsyncIterator[aiohttp.ClientResponse]:
    """An open streamed completion of the replica at ``url``, its first token already there."""
    body = {"model": "chat", "stream": True, "max_tokens": tokens}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/v1/chat/completions", json=body) as response,
    ):
        assert response.status == 200
        assert b"t" in await response.content.readline()
        yield response


async def post(url: str, path: str, **body: Any) -> tuple[int, Any]:
    """POST JSON; status and answer."""
    async with aiohttp.ClientSession() as session, session.post(url + path, json=body) as response:
        return response.status, await response.json()


def environment(pid: int | None) -> list[bytes]:
    """What process ``pid`` was given, NAME=VALUE."""
    return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


async def ready(url: str) -> tuple[int, str]:
    """Status and reason of /ready."""
    async with aiohttp.ClientSession() as session, session.get(f"{url}/ready") as response:
        return response.status, (await response.json())["reason"]
