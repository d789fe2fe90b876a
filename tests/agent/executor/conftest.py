"""A node whose executor runs, and a way to wait for what it says."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agent.executor.node import Node

PATIENCE_S = 60.0


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    made.close()


@contextlib.asynccontextmanager
async def running(node: Node) -> AsyncIterator[None]:
    task = asyncio.ensure_future(node.executor.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], Any]) -> Any:
    """The condition's value, once it is true."""
    async with asyncio.timeout(PATIENCE_S):
        while not (value := condition()):
            await asyncio.sleep(0.01)
    return value
