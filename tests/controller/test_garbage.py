"""What has lived through a full collection is walked over no more, until it is asked for."""

import gc
from collections.abc import Iterator

import pytest

from controller import garbage


class Ring:
    """Garbage that only the collector can find: it refers to itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def put_back() -> Iterator[None]:
    before = list(gc.callbacks)
    yield
    gc.callbacks[:] = before
    gc.unfreeze()


@pytest.mark.usefixtures("put_back")
def test_what_a_full_collection_leaves_is_set_aside() -> None:
    garbage.set_aside()
    kept = [Ring()]
    gc.collect()
    assert gc.get_freeze_count() > 0
    assert not any(each is kept for each in gc.get_objects())


@pytest.mark.usefixtures("put_back")
def test_garbage_that_was_set_aside_is_freed_when_asked_for() -> None:
    garbage.set_aside()
    kept = [Ring() for _ in range(100)]
    gc.collect()
    kept.clear()
    assert gc.collect() < 100
    assert garbage.collect() >= 100
