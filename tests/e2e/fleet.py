"""A whole fleet of real processes for a test, and what its API says of it."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp

from corral.up.house import House
from corral.up.plan import Plan
from vocab.errors import CorralError
from wire.client import Client

ROOT = Path(__file__).resolve().parents[2]
FAKE_REPLICA = (sys.executable, str(ROOT / "tests" / "fakes" / "replica"))
PATIENCE_S = 150.0  # shared machines: only a hang is a failure, slowness is not


def free_base_port() -> int:
    """A port from which 60 upward are very likely free; test runs beside this one look from elsewhere.

    Those are neighbours by their process ids, and each goes some steps up past its own last ports, which are not free
    at once: so they begin far from each other.
    """
    bases = range(10_000, 32_700, 100)  # below the ports that kernels give out by themselves
    begin = os.getpid() * 61 % len(bases)
    for base in [*bases[begin:], *bases[:begin]]:
        with contextlib.ExitStack() as stack:
            try:
                for offset in (0, 10, 20, 30, 31, 32, 33, 34, 35):
                    door = stack.enter_context(socket.socket())
                    door.bind(("127.0.0.1", base + offset))
            except OSError:
                continue
            return base
    raise AssertionError("no free ports")


class Fleet:
    """The running house and shortcuts into its API."""

    def __init__(self, house: House, client: Client) -> None:
        self.house = house
        self.plan = house.plan
        self._client = client

    @property
    def session(self) -> aiohttp.ClientSession:
        return self._client.session

    async def get(self, path: str, **query: Any) -> Any:
        return await self._client.call("GET", path, Any, **query)

    async def post(self, path: str, body: Any) -> Any:
        return await self._client.call("POST", path, Any, body)

    async def delete(self, path: str, body: Any) -> Any:
        return await self._client.call("DELETE", path, Any, body)

    async def drill(self, kind: str, gpu: int, **more: Any) -> None:
        async with Client(self.plan.agent) as agent:
            await agent.call("POST", "/api/v1/drills", Any, {"kind": kind, "gpu": gpu, **more})

    async def gpus(self) -> list[dict[str, Any]]:
        fleet = await self.get("/api/v1/fleet")
        return sorted((gpu for node in fleet["nodes"] for gpu in node["gpus"]), key=lambda gpu: gpu["index"])

    async def replicas(self, deployment: str) -> list[dict[str, Any]]:
        return [each for each in await self.get("/api/v1/replicas") if each["deployment"] == deployment]

    async def gpu_serving(self, deployment: str) -> dict[str, Any]:
        """A GPU on which a ready replica of this deployment runs."""
        replica = next(each for each in await self.replicas(deployment) if each["state"] == "ready")
        return next(gpu for gpu in await self.gpus() if gpu["uuid"] in replica["gpus"])

    async def explain(self, uuid: str) -> list[dict[str, Any]]:
        return await self.get(f"/api/v1/gpus/{uuid}/explain")

    async def until(self, what: str, condition: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
        """Poll an async condition until it is true; its value. Fails naming ``what``."""
        deadline = asyncio.get_running_loop().time() + patience_s
        last: object = None
        while asyncio.get_running_loop().time() < deadline:
            try:
                last = await condition()
                if last:
                    return last
            except CorralError as error:
                last = error
            await asyncio.sleep(0.1)
        raise AssertionError(f"never happened: {what} (last: {last!r})")

    async def all_ready(self) -> bool:
        deployments = (await self.get("/api/v1/fleet"))["deployments"]
        return bool(deployments) and all(each["ready"] >= each["wanted"] for each in deployments)

    def corral(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command line, as a person types it in a second terminal."""
        return subprocess.run(
            [sys.executable, "-m", "corral", *arguments],
            env={"CORRAL_URL": self.plan.controller, "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@contextlib.asynccontextmanager
async def fleet(
    state: Path, *, real_engine: bool, restart: bool = True, patience_s: float = PATIENCE_S
) -> AsyncIterator[Fleet]:
    """A fleet with all its replicas ready; with the fake replica program unless ``real_engine``."""
    plan = Plan(state=state, base_port=free_base_port(), replica_program=() if real_engine else FAKE_REPLICA)
    async with House(plan, restart=restart).opened() as house, Client(plan.controller) as client:
        running = Fleet(house, client)
        await running.until("all replicas ready", running.all_ready, patience_s)
        yield running
