"""Collects what a source emits, and waits for what a test expects."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from agent.sources.source import Source
from vocab.observations import AnyObservation

LIMIT_S = 90.0  # only a hang is a failure, slowness is not
T = TypeVar("T")


class Collector:
    """All observations in order; ``find`` waits until one of a kind satisfies a condition."""

    def __init__(self) -> None:
        self.seen: list[AnyObservation] = []
        self._news = asyncio.Event()

    def emit(self, observation: AnyObservation) -> None:
        self.seen.append(observation)
        self._news.set()

    def all(self, kind: type[T]) -> list[T]:
        return [one for one in self.seen if isinstance(one, kind)]

    async def find(self, kind: type[T], wanted: Callable[[T], bool] = lambda _: True, *, after: int = 0) -> T:
        """The first of the observations from number ``after`` on that is wanted; waits for it."""
        async with asyncio.timeout(LIMIT_S):
            at = after
            while True:
                for one in self.seen[at:]:
                    if isinstance(one, kind) and wanted(one):
                        return one
                at = len(self.seen)
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def running(source: Source) -> AsyncIterator[Collector]:
    """The source at work until the block ends."""
    collector = Collector()
    task = asyncio.create_task(source.run(collector.emit))
    try:
        yield collector
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
