"""What holds for every test."""

import os

import pytest


@pytest.fixture(autouse=True)
def _no_width_of_another_test() -> None:
    """Commands that ran side by side may leave the COLUMNS of one behind; a test that needs a width gives it."""
    os.environ.pop("COLUMNS", None)
