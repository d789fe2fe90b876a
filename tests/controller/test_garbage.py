"""What has lived through a full collection is walked over no more, until it is asked for."""

import gc
from collections.abc import Iterator

import pytest

from controller import garbage
from controller.core.core import Core
from controller.deciding import ingest
from tests.bench.fleet_load import batch, first


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


def test_what_heartbeats_bring_and_what_is_drawn_of_it_is_nothing_to_walk_over() -> None:
    core = Core()
    for raw in (first("n1", 2), batch("n1", gpu=0, readings=2)):
        for stimulus in ingest.stimuli(ingest.decode_batch.decode(raw), []):
            core.see(stimulus, 1_796_000_000.0)
    (node,) = core.view().nodes
    statuses = [core._fleet.gpus[gpu.uuid].status for gpu in node.gpus]
    assert all(status is not None and status.readings is not None for status in statuses)
    assert not any(map(gc.is_tracked, (node, *node.gpus, *statuses)))


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
