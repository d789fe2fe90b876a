"""Clients that keep streaming chat completions open through the gateway and write down every failure."""

import asyncio
import json
from types import TracebackType

import aiohttp


class Load:
    """``streams`` clients, each sending one streamed request after the other, while the context is open."""

    def __init__(self, gateway: str, model: str, streams: int, max_tokens: int = 24) -> None:
        self.url = f"{gateway}/v1/chat/completions"
        self.model = model
        self.streams = streams
        self.max_tokens = max_tokens
        self.failures: list[str] = []
        self.finished = 0
        self._running = True
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Load":
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=120))
        self._tasks = [asyncio.create_task(self._client(number)) for number in range(self.streams)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running = False
        await asyncio.gather(*self._tasks)
        await self._session.close()

    async def _client(self, number: int) -> None:
        turn = 0
        while self._running:
            turn += 1
            try:
                await self._one(f"Client {number}, turn {turn}: name a colour.")
            except (aiohttp.ClientError, TimeoutError) as error:
                self.failures.append(f"{type(error).__name__}: {error}")
                await asyncio.sleep(0.2)  # a client that failed does not hammer

    async def _one(self, text: str) -> None:
        body = {
            "model": self.model,
            "stream": True,
            "max_tokens": self.max_tokens,
            "messages": [{"role": "user", "content": text}],
        }
        async with self._session.post(self.url, json=body) as response:
            if response.status != 200:
                self.failures.append(f"status {response.status}: {(await response.text())[:300]}")
                await asyncio.sleep(0.2)  # a client that failed does not hammer
                return
            last, chunks = "", 0
            async for raw in response.content:
                line = raw.decode().strip()
                if line.startswith("data: "):
                    last = line.removeprefix("data: ")
                    chunks += 1
                    if last != "[DONE]" and "error" in json.loads(last):
                        self.failures.append(f"error inside the stream: {last[:300]}")
                        return
        if last != "[DONE]" or chunks < 3:
            self.failures.append(f"stream cut after {chunks} chunks")
        else:
            self.finished += 1

    async def served(self, more: int) -> None:
        """Return once ``more`` further requests have been answered wholly."""
        goal = self.finished + more
        while self.finished < goal:
            await asyncio.sleep(0.05)
