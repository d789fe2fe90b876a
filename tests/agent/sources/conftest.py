from pathlib import Path

import pytest

from agent.sources.nvml import NvmlSource
from agent.virtual.state import VirtualState
from tests.agent.sources.rig import make
from tests.fakes.nvml.fixture import nvml_library

__all__ = ["nvml_library"]


@pytest.fixture
def state(tmp_path: Path) -> VirtualState:
    return VirtualState.create(tmp_path / "virtual.state", "node-a")


@pytest.fixture
def source(nvml_library: Path, state: VirtualState, tmp_path: Path) -> NvmlSource:
    return make(nvml_library, state, tmp_path)
