from pathlib import Path

import pytest

from tests.engine.tiny import write_model


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny random model."""
    return write_model(tmp_path_factory.mktemp("tiny") / "model")
