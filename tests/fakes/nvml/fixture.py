"""The compiled library as a fixture, once a test session."""

from pathlib import Path

import pytest

from tests.fakes.nvml.build import build


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))
