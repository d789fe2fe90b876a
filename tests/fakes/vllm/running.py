"""A fake vLLM as a process of its own, for the length of a test."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

from tests.ports import free_ports

PROGRAM = Path(__file__).parent


class Vllm:
    """A started one. ``url`` is where it serves once ``up`` returns."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, model: str) -> None:
        self.process = process
        self.url = url
        self.model = model

    @property
    def pid(self) -> int:
        return self.process.pid

    async def up(self, within_s: float = 60.0) -> "Vllm":
        async with asyncio.timeout(within_s), aiohttp.ClientSession() as session:
            while True:
                with suppress(aiohttp.ClientError):
                    async with session.get(f"{self.url}/health") as answer:
                        if answer.status == 200:
                            return self
                assert self.process.poll() is None, "the fake vLLM ended before it served"
                await asyncio.sleep(0.02)

    async def control(self, **failing: Any) -> dict[str, Any]:
        async with aiohttp.ClientSession() as session, session.post(f"{self.url}/control", json=failing) as answer:
            return await answer.json()

    async def ask(self, max_tokens: int = 4) -> int:
        """One request that is read to its end; its status."""
        return (await self._post(max_tokens, stream=False))[0]

    async def stream(self, max_tokens: int) -> list[str]:
        """The data of all chunks of a streamed answer."""
        _, text = await self._post(max_tokens, stream=True)
        return [line.removeprefix("data: ") for line in text.splitlines() if line]

    async def _post(self, max_tokens: int, *, stream: bool) -> tuple[int, str]:
        body = {"model": self.model, "max_tokens": max_tokens, "prompt": "x", "stream": stream}
        async with aiohttp.ClientSession() as session, session.post(f"{self.url}/v1/completions", json=body) as answer:
            return answer.status, (await answer.read()).decode()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


@asynccontextmanager
async def running(model: str = "smol", port: int | None = None, **flags: object) -> AsyncIterator[Vllm]:
    """Started in a session of its own, as a service manager does; killed at the end with all that it started."""
    port = port or free_ports(1)[0]
    words = [word for name, value in flags.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    command = [
        sys.executable,
        str(PROGRAM),
        "serve",
        "/models/weights",
        "--served-model-name",
        model,
        "--port",
        str(port),
    ]
    process = subprocess.Popen([*command, *words], start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        yield Vllm(process, f"http://127.0.0.1:{port}", model)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
