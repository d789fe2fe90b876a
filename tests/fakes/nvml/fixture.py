"""The compiled library as a fixture, once a test session."""

from pathlib import Path

import pytest

from tests.fakes.nvml.build import build
from tests.programs import need


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("gcc", "apt-get install gcc libc6-dev")
    return build(tmp_path_factory.mktemp("nvml"))
