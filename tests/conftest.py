"""What holds for every test."""

import gc
import os

import pytest

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # PyTorch's threads else spin while other tests want the core


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that take long come first, so that others run beside them; the order is random otherwise."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    """What has been imported stays: the garbage collector need not look through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_width_of_another_test() -> None:
    """Commands that ran side by side may leave the COLUMNS of one behind; a test that needs a width gives it."""
    os.environ.pop("COLUMNS", None)
