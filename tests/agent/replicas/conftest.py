from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agent.replicas.node import Node


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    """A node on which nothing runs; at the end nothing runs again."""
    made = Node(tmp_path / "run")
    try:
        yield made
    finally:
        await made.halt()
        made.sweep()
