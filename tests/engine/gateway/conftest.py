from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.engine.gateway.stand import Stand


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    made = Stand(tmp_path)
    try:
        yield made
    finally:
        await made.close()
